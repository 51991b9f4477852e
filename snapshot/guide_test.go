package snapshot

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestGuideListsEveryProblem: the table of the guide lists all problems, the most severe first.
func TestGuideListsEveryProblem(t *testing.T) {
	text, err := os.ReadFile("../docs/guide/seeing.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| kind | reported when | what to do |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var listed []Problem
	for _, m := range regexp.MustCompile(`(?m)^\| ([a-z-]+) \| `).FindAllStringSubmatch(table, -1) {
		listed = append(listed, Problem(m[1]))
	}
	if !slices.Equal(listed, severity) {
		t.Errorf("docs/guide/seeing.md lists %q, not %q", listed, severity)
	}
}
