package export

import (
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coir-go/coir/internal/document"
	"github.com/coir-go/coir/metrics"
)

var update = flag.Bool("update", false, "write the table of metrics into the guide")

// The guide lists every metric.
func TestTheGuide(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "guide", "seeing.md")
	const begin, end = "<!-- go -C verify test ./export -run TestTheGuide -update -->\n", "<!-- end -->\n"
	var table strings.Builder
	table.WriteString("\n| metric | labels | what it is |\n|---|---|---|\n")
	for m := range metrics.All() {
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", m.Name, strings.Join(m.Labels, ", "), m.Help)
	}
	table.WriteString("\n")
	same, err := document.Keep(path, begin, end, table.String(), *update)
	if err != nil {
		t.Fatal(err)
	}
	if !same {
		t.Fatalf("the table of metrics in %s is not up to date: run make generate", path)
	}
}
