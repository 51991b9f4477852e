package snapshot

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// TestGuideListsEveryProblem: the table of the guide has all problems, the most severe first.
func TestGuideListsEveryProblem(t *testing.T) {
	text, err := os.ReadFile("../docs/guide/seeing.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed []Problem
	for _, m := range regexp.MustCompile(`(?m)^\| ([a-z-]+) \| `).FindAllSubmatch(text, -1) {
		if listed = append(listed, Problem(m[1])); listed[0] != "kind" {
			listed = nil // another table
		}
	}
	if len(listed) == 0 || !slices.Equal(listed[1:], severity) {
		t.Errorf("docs/guide/seeing.md lists %q, not %q", listed, severity)
	}
}
