package export

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coir-go/coir/metrics"
)

var update = flag.Bool("update", false, "write the table of metrics into the guide")

// The guide lists every metric.
func TestTheGuide(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "guide", "seeing.md")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- go -C verify test ./export -run TestTheGuide -update -->\n", "<!-- end -->\n"
	before, rest, ok := strings.Cut(string(b), begin)
	_, after, ended := strings.Cut(rest, end)
	if !ok || !ended {
		t.Fatalf("%s has no place for the table: write %q and %q there", path, begin, end)
	}
	var table strings.Builder
	table.WriteString("\n| metric | labels | what it is |\n|---|---|---|\n")
	for m := range metrics.All() {
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", m.Name, strings.Join(m.Labels, ", "), m.Help)
	}
	table.WriteString("\n")
	want := before + begin + table.String() + end + after
	if want == string(b) {
		return
	}
	if !*update {
		t.Fatalf("the table of metrics in %s is not up to date: run make generate", path)
	}
	if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}
