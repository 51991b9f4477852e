package archtest

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestCitationsNameRules: code and tests name the rules they keep, and a name that leads nowhere is worse than none.
func TestCitationsNameRules(t *testing.T) {
	spec, _, err := ReadSpec(root(t))
	if err != nil {
		t.Fatal(err)
	}
	citations, malformed, err := Citations(root(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range malformed {
		t.Error(m)
	}
	for _, c := range citations {
		if !spec.Has(c.Rule) {
			t.Errorf("%s (%s) cites %s, but spec/SPEC.md has no such rule: cite the rule that is meant, or add it at the end of its area", c.File, c.In, c.Rule)
		}
	}
}

func TestCited(t *testing.T) {
	for _, c := range []struct {
		text string
		ids  []string
		bad  int
	}{
		{"no citation here", nil, 0},
		{"Spec: PK-03.", []string{"PK-03"}, 0},
		{"Why. Spec: PK-03, SC-10. More.", []string{"PK-03", "SC-10"}, 0},
		{"Spec: PK-03,\nSC-10, TM-104", []string{"PK-03", "SC-10", "TM-104"}, 0},
		{"Spec: PK-03 (why)", []string{"PK-03"}, 0},
		{"Spec: PK-01.\nSpec: SC-02.", []string{"PK-01", "SC-02"}, 0},
		{"Spec: pk-03", nil, 1},
		{"Spec: PK-3", nil, 1},
		{"Spec: PK-03 to PK-05", nil, 1},
		{"Spec: PK-03 and PK-05", nil, 1},
		{"Spec: PK-03 PK-05", nil, 1},
		{"Spec: PK-03-05", nil, 1},
	} {
		ids, bad := cited(c.text)
		if !slices.Equal(ids, c.ids) || len(bad) != c.bad {
			t.Errorf("cited(%q) = %q and %d malformed, want %q and %d", c.text, ids, len(bad), c.ids, c.bad)
		}
	}
}

// TestCitationsKnowTheirPlace: the map says where, so a comment must be given to the declaration that it is about.
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
	// Spec: AA-05.
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
`
	if err := os.WriteFile(filepath.Join(dir, "p.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	got, malformed, err := Citations(dir)
	if err != nil || len(malformed) != 0 {
		t.Fatal(err, malformed)
	}
	want := []Citation{
		{"AA-01", "p.go", ""},
		{"AA-02", "p.go", "T"},
		{"AA-03", "p.go", "T"},
		{"AA-04", "p.go", "T.M"},
		{"AA-05", "p.go", "T.M"},
		{"AA-06", "p.go", "A"},
		{"AA-07", "p.go", "B"},
		{"AA-08", "p.go", "F"},
		{"AA-09", "p.go", "F"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("citations are\n%v, want\n%v", got, want)
	}
}
