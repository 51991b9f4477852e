package archtest

// Weak lists the rules that no test cites, only code, a model or a benchmark. The list may get shorter. It gets longer
// only in a review that accepts that no test can check the rule.
var Weak = map[Kind][]string{
	Code: {
		"CH-50", "FB-02", "FB-04", "FB-05", "FB-11", "FB-12", "FB-27", "FB-28", "PK-20", "PK-39",
		"SC-41", "SC-48",
	},
	Model: {"PK-49", "SC-09", "SH-13"},
}
