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
	spec, _ := parseSpec("## PK Parking\n- **PK-01** A. (FL 1)\n- **PK-02** B. (FL 2)\n## SC Scheduler\n- **SC-01** C. (FS)\n")
	got := string(renderMap(spec, []Citation{
		{"PK-01", "park/word.go", "Word.Wake"},
		{"PK-01", "park/word.go", "Word.Wake"},
		{"PK-01", "park/word_test.go", "TestWake"},
		{"PK-01", "models/word.pml", ""},
		{"PK-02", "docs/HACKING.md", ""},
	}))
	for _, want := range []string{
		"3 rules: 1 cited (1 by code and tests), 2 open.\n",
		"| PK-01 | `park/word.go` Word.Wake | `models/word.pml`<br>`park/word_test.go` TestWake |\n",
		"### PK Parking: 1 open\n\n- PK-02 B. (FL 2)\n",
		"### SC Scheduler: 1 open\n\n- SC-01 C. (FS)\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the map lacks %q:\n%s", want, got)
		}
	}
}
