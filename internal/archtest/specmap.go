package archtest

import (
	"fmt"
	"slices"
	"strings"
)

// SpecMap renders spec/MAP.md: for each rule the code that keeps it and the tests that defend it, and the rules that
// nothing cites yet. Places are file and name without line numbers, so that the map changes only when its content does.
func SpecMap(root string) ([]byte, error) {
	spec, _, err := ReadSpec(root)
	if err != nil {
		return nil, err
	}
	citations, _, err := Citations(root)
	if err != nil {
		return nil, err
	}
	return renderMap(spec, citations), nil
}

// Defended returns, for each cited rule, the strongest kind of place that cites it.
func Defended(citations []Citation) map[string]Kind {
	defended := make(map[string]Kind)
	for _, c := range citations {
		if kind := c.Kind(); kind != Prose {
			defended[c.Rule] = max(defended[c.Rule], kind)
		}
	}
	return defended
}

// marks are the words of the map for what supports a rule.
var marks = map[Kind]string{Test: "test", Model: "**model only**", Benchmark: "**benchmark only**", Code: "**code only**"}

func renderMap(spec *Spec, citations []Citation) []byte {
	code, tests := make(map[string][]string), make(map[string][]string)
	for _, c := range citations {
		if c.InProse() {
			continue
		}
		into := code
		if c.IsTest() {
			into = tests
		}
		where := "`" + c.File + "`"
		if c.In != "" {
			where += " " + c.In
		}
		if !slices.Contains(into[c.Rule], where) {
			into[c.Rule] = append(into[c.Rule], where)
		}
	}
	defended := Defended(citations)

	var cited, open, out []Rule
	counts := make(map[Kind]int)
	for _, r := range spec.Rules {
		kind, is := defended[r.ID]
		switch {
		case r.RuledOut():
			out = append(out, r)
		case is:
			cited = append(cited, r)
			counts[kind]++
		default:
			open = append(open, r)
		}
	}

	var b strings.Builder
	fmt.Fprint(&b, "# Rules, the code that keeps them, the tests that defend them\n\n"+
		"Generated from the citations by `go run ./internal/archtest/specmap`. Do not edit.\n\n")
	fmt.Fprintf(&b, "%d rules: %d cited (%d by a test, %d by a model only, %d by a benchmark only, %d by code only), %d open, %d ruled out.\n",
		len(spec.Rules), len(cited), counts[Test], counts[Model], counts[Benchmark], counts[Code], len(open), len(out))
	if len(cited) > 0 {
		fmt.Fprint(&b, "\n## Cited rules\n\n| rule | defended by | code | tests and models |\n|---|---|---|---|\n")
		for _, r := range cited {
			fmt.Fprintf(&b, "| %s (%s) | %s | %s | %s |\n", r.ID, r.Title, marks[defended[r.ID]],
				places(code[r.ID]), places(tests[r.ID]))
		}
	}
	if len(out) > 0 {
		fmt.Fprint(&b, "\n## Rules that were ruled out\n\n")
		for _, r := range out {
			fmt.Fprintf(&b, "- %s (%s) %s\n", r.ID, r.Title, strings.TrimPrefix(r.Text, "Ruled out: "))
		}
	}
	if len(open) > 0 {
		fmt.Fprint(&b, "\n## Open rules\n\nNothing cites these yet.\n")
		for _, a := range spec.Areas {
			in := slices.DeleteFunc(slices.Clone(open), func(r Rule) bool { return r.Area() != a.Code })
			if len(in) == 0 {
				continue
			}
			fmt.Fprintf(&b, "\n### %s %s: %d open\n\n", a.Code, a.Title, len(in))
			for _, r := range in {
				fmt.Fprintf(&b, "- %s (%s) %s\n", r.ID, r.Title, r.Text)
			}
		}
	}
	return []byte(b.String())
}

func places(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	slices.Sort(list)
	return strings.Join(list, "<br>")
}
