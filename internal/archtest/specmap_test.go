package archtest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSpecMapIsFresh: a generated file that is stale misleads with authority.
func TestSpecMapIsFresh(t *testing.T) {
	want, err := SpecMap(root(t))
	if err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile(filepath.Join(root(t), "spec", "MAP.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(bytes.ReplaceAll(have, []byte("\r\n"), []byte("\n")), want) {
		t.Error("spec/MAP.md is stale: run `go run ./internal/archtest/specmap`")
	}
}

func TestRenderMap(t *testing.T) {
	spec, _ := parseSpec("## PK Parking\n- **PK-01** A. (FL 1)\n- **PK-02** B. (FL 2)\n## SC Scheduler\n- **SC-01** C. (FS)\n" +
		"- **SC-02** D. (FS)\n- **SC-03** E. (FS)\n- **SC-04** F. (FS)\n- **SC-05** Ruled out: G. (FS)\n")
	got := string(renderMap(spec, []Citation{
		{"PK-01", "park/word.go", "Word.Wake"},
		{"PK-01", "park/word.go", "Word.Wake"},
		{"PK-01", "park/word_test.go", "TestWake"},
		{"PK-01", "models/word.pml", ""},
		{"PK-02", "docs/HACKING.md", ""},
		{"SC-02", "a.go", "F"},
		{"SC-02", "models/word.pml", ""},
		{"SC-03", "a.go", "F"},
		{"SC-03", "a_test.go", "BenchmarkF"},
		{"SC-04", "a.go", "F"},
		{"SC-05", "a_test.go", "TestF"},
	}))
	for _, want := range []string{
		"7 rules: 4 cited (1 by a test, 1 by a model only, 1 by a benchmark only, 1 by code only), 2 open, 1 ruled out.\n",
		"| PK-01 | test | `park/word.go` Word.Wake | `models/word.pml`<br>`park/word_test.go` TestWake |\n",
		"| SC-02 | **model only** | `a.go` F | `models/word.pml` |\n",
		"| SC-03 | **benchmark only** | `a.go` F | `a_test.go` BenchmarkF |\n",
		"| SC-04 | **code only** | `a.go` F | none |\n",
		"## Rules that were ruled out\n\n- SC-05 G. (FS)\n",
		"### PK Parking: 1 open\n\n- PK-02 B. (FL 2)\n",
		"### SC Scheduler: 1 open\n\n- SC-01 C. (FS)\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the map lacks %q:\n%s", want, got)
		}
	}
}
