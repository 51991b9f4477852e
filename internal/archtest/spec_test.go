package archtest

import (
	"strings"
	"testing"
)

// TestSpecIsWellFormed checks that every rule has a unique number, in order.
func TestSpecIsWellFormed(t *testing.T) {
	spec, faults, err := ReadSpec(root(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		t.Error(f)
	}
	want := "FB PK SC NU CH SE TM TK BU ST OB SH SM"
	var have []string
	for _, a := range spec.Areas {
		have = append(have, a.Code)
	}
	if got := strings.Join(have, " "); got != want {
		t.Errorf("areas are %s, want %s", got, want)
	}
}

// TestParseSpecFindsFaults checks that the parser finds each kind of fault.
func TestParseSpecFindsFaults(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"twice":   {"## PK Parking\n- **PK-01 (t1)** A.\n- **PK-01 (t2)** B.\n", "given twice"},
		"gap":     {"## PK Parking\n- **PK-01 (t1)** A.\n- **PK-03 (t3)** B.\n", "next number of the area is PK-02"},
		"first":   {"## PK Parking\n- **PK-02 (t2)** A.\n", "next number of the area is PK-01"},
		"area":    {"## PK Parking\n- **SC-01 (t1)** A.\n", `under the heading of area "PK"`},
		"form":    {"## PK Parking\n- **PK-1 (t1)** A.\n", "looks like a rule"},
		"title":   {"## PK Parking\n- **PK-01** A.\n", "needs a title"},
		"same":    {"## PK Parking\n- **PK-01 (t1)** A.\n- **PK-02 (t1)** B.\n", "that no other rule has"},
		"heading": {"## PK Parking\n- **PK-01 (t1)** A.\n## PK Again\n", "a second time"},
	} {
		_, faults := parseSpec(c.text)
		if len(faults) != 1 || !strings.Contains(faults[0], c.want) {
			t.Errorf("%s: faults are %q, want one that says %q", name, faults, c.want)
		}
	}
	spec, faults := parseSpec("## PK Parking\n- **PK-01 (t1)** A.\n- **PK-02 (t2)** B. (ruling 2)\n## Other\n- free\n")
	if len(faults) != 0 || len(spec.Rules) != 2 || spec.Title("PK-02") != "t2" || spec.Has("PK-03") {
		t.Errorf("a clean text reads as %+v with faults %q", spec, faults)
	}
}
