package archtest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSpecMapIsFresh checks that spec/MAP.md is current, because a stale generated file misleads.
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
	spec, _ := parseSpec("## PK Parking\n- **PK-01 (p1)** A.\n- **PK-02 (p2)** B.\n## SC Scheduler\n- **SC-01 (s1)** C.\n" +
		"- **SC-02 (s2)** D.\n- **SC-03 (s3)** E.\n- **SC-04 (s4)** F.\n- **SC-05 (s5)** Ruled out: G.\n")
	got := string(renderMap(spec, []Citation{
		{Rule: "PK-01", File: "park/word.go", In: "Word.Wake"},
		{Rule: "PK-01", File: "park/word.go", In: "Word.Wake"},
		{Rule: "PK-01", File: "park/word_test.go", In: "TestWake"},
		{Rule: "PK-01", File: "promela/word.pml"},
		{Rule: "PK-02", File: "docs/HACKING.md"},
		{Rule: "SC-02", File: "a.go", In: "F"},
		{Rule: "SC-02", File: "promela/word.pml"},
		{Rule: "SC-03", File: "a.go", In: "F"},
		{Rule: "SC-03", File: "a_test.go", In: "BenchmarkF"},
		{Rule: "SC-04", File: "a.go", In: "F"},
		{Rule: "SC-05", File: "a_test.go", In: "TestF"},
	}))
	for _, want := range []string{
		"7 rules: 4 cited (1 by a test, 1 by a model only, 1 by a benchmark only, 1 by code only), 2 open, 1 ruled out.\n",
		"| PK-01 (p1) | test | `park/word.go` Word.Wake | `park/word_test.go` TestWake<br>`promela/word.pml` |\n",
		"| SC-02 (s2) | **model only** | `a.go` F | `promela/word.pml` |\n",
		"| SC-03 (s3) | **benchmark only** | `a.go` F | `a_test.go` BenchmarkF |\n",
		"| SC-04 (s4) | **code only** | `a.go` F | none |\n",
		"## Rules that were ruled out\n\n- SC-05 (s5) G.\n",
		"### PK Parking: 1 open\n\n- PK-02 (p2) B.\n",
		"### SC Scheduler: 1 open\n\n- SC-01 (s1) C.\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the map lacks %q:\n%s", want, got)
		}
	}
}
