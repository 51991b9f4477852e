package archtest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// scan reads the citations of this repository once for all tests, because in race builds that takes seconds.
var scan = sync.OnceValue(func() (s struct {
	found     []Citation
	malformed []string
	err       error
},
) {
	dir, err := Root(".")
	if err != nil {
		s.err = err
		return s
	}
	s.found, s.malformed, s.err = Citations(dir)
	return s
})

func citationsHere(t *testing.T) (found []Citation, malformed []string) {
	t.Helper()
	s := scan()
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.found, s.malformed
}

// TestCitationsNameRules checks that code and tests cite only rules that exist.
func TestCitationsNameRules(t *testing.T) {
	spec, _, err := ReadSpec(root(t))
	if err != nil {
		t.Fatal(err)
	}
	citations, malformed := citationsHere(t)
	for _, m := range malformed {
		t.Error(m)
	}
	for _, c := range citations {
		if !spec.Has(c.Rule) {
			t.Errorf("%s (%s) cites %s, but spec/SPEC.md has no such rule: cite the rule that is meant, or add it at the end of its area", c.File, c.In, c.Rule)
		}
	}
}

// TestCitationsHaveTitles checks the titles of citations: a number alone tells the reader nothing, and a wrong title
// misleads. In models and in prose a number needs no title.
func TestCitationsHaveTitles(t *testing.T) {
	spec, _, err := ReadSpec(root(t))
	if err != nil {
		t.Fatal(err)
	}
	citations, _ := citationsHere(t)
	for _, c := range citations {
		title := spec.Title(c.Rule)
		if c.Title == title || c.Title == "" && !strings.HasSuffix(c.File, ".go") {
			continue
		}
		t.Errorf("%s (%s) cites %s with the title %q: write Spec: %[3]s (%[5]s)", c.File, c.In, c.Rule, c.Title, title)
	}
}

// TestPublicDocsCiteNoRules checks the doc comments of exported names. They are for users, who do not know the rules by
// number.
func TestPublicDocsCiteNoRules(t *testing.T) {
	citations, _ := citationsHere(t)
	for _, c := range citations {
		if c.Public {
			t.Errorf("%s: the doc comment of %s cites %s: move the citation to a plain comment inside", c.File, c.In, c.Rule)
		}
	}
}

func TestCited(t *testing.T) {
	for _, c := range []struct {
		text string
		list []Citation
		bad  int
	}{
		{"no citation here", nil, 0},
		{"Spec: PK-03.", []Citation{{Rule: "PK-03"}}, 0},
		{"Why. Spec: PK-03, SC-10. More.", []Citation{{Rule: "PK-03"}, {Rule: "SC-10"}}, 0},
		{"Spec: PK-03,\nSC-10, TM-104", []Citation{{Rule: "PK-03"}, {Rule: "SC-10"}, {Rule: "TM-104"}}, 0},
		{"Spec: PK-03 (why)", []Citation{{Rule: "PK-03", Title: "why"}}, 0},
		{"Spec: PK-03 (why\nso)", []Citation{{Rule: "PK-03", Title: "why so"}}, 0},
		{"Spec: PK-03 (why), SC-10 (how).", []Citation{{Rule: "PK-03", Title: "why"}, {Rule: "SC-10", Title: "how"}}, 0},
		{"Spec: PK-01 (a)\nSpec: SC-02 (b)", []Citation{{Rule: "PK-01", Title: "a"}, {Rule: "SC-02", Title: "b"}}, 0},
		{"Spec: pk-03", nil, 1},
		{"Spec: PK-3", nil, 1},
		{"Spec: PK-03 to PK-05", nil, 1},
		{"Spec: PK-03 and PK-05", nil, 1},
		{"Spec: PK-03 PK-05", nil, 1},
		{"Spec: PK-03-05", nil, 1},
		{"Spec: PK-03 (a) and PK-05 (b)", nil, 1},
	} {
		list, bad := cited(c.text)
		if !slices.Equal(list, c.list) || len(bad) != c.bad {
			t.Errorf("cited(%q) = %v and %d malformed, want %v and %d", c.text, list, len(bad), c.list, c.bad)
		}
	}
}

// TestCitationsKnowTheirPlace checks that a comment is attributed to the right declaration, because the map shows the
// declarations.
func TestCitationsKnowTheirPlace(t *testing.T) {
	dir := t.TempDir()
	source := `// Package p. Spec: AA-01.
package p

// T is a type. Spec: AA-02.
type T[E any] struct {
	n int // Spec: AA-03.
}

// M is a method. Spec: AA-04.
func (t *T[E]) M() {
	// Spec: AA-05 (five).
	_ = "Spec: AA-99"
}

const (
	// A. Spec: AA-06.
	A = 1
	B = 2 // Spec: AA-07.
)

// F is a function.
//
// Spec: AA-08,
// AA-09.
func F() {}

// Spec: AA-10
func g() {}

// M. Spec: AA-11
func (u) M() {}

// C. Spec: AA-12
const C = 1
`
	if err := os.WriteFile(filepath.Join(dir, "p.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	got, malformed, err := Citations(dir)
	if err != nil || len(malformed) != 0 {
		t.Fatal(err, malformed)
	}
	want := []Citation{
		{Rule: "AA-01", File: "p.go"},
		{Rule: "AA-02", File: "p.go", In: "T", Public: true},
		{Rule: "AA-03", File: "p.go", In: "T"},
		{Rule: "AA-04", File: "p.go", In: "T.M", Public: true},
		{Rule: "AA-05", File: "p.go", In: "T.M", Title: "five"},
		{Rule: "AA-06", File: "p.go", In: "A", Public: true},
		{Rule: "AA-07", File: "p.go", In: "B"},
		{Rule: "AA-08", File: "p.go", In: "F", Public: true},
		{Rule: "AA-09", File: "p.go", In: "F", Public: true},
		{Rule: "AA-10", File: "p.go", In: "g"},
		{Rule: "AA-11", File: "p.go", In: "u.M"},
		{Rule: "AA-12", File: "p.go", In: "C", Public: true},
	}
	if !slices.Equal(got, want) {
		t.Errorf("citations are\n%v, want\n%v", got, want)
	}
}
