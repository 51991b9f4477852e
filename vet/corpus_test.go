package vet_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"

	"github.com/coir-go/coir/vet"
)

// corpus lists the programs of buf/corpus_test.go, which a checked region detects when they run. The analyzer finds
// those without a reason in notFound.
var corpus = []struct{ name, notFound string }{
	{name: "use after release"},
	{name: "double release"},
	{name: "release of a copy"},
	{name: "release of a part"},
	{name: "deferred release after a send"},
	{name: "use after a send"},
	{name: "use before it is received"},
	{name: "sent twice"},
	{name: "append after a send"},
	{name: "old copy after append", notFound: "an Append that fits leaves the old copy valid"},
	{name: "write after a release"},
	{name: "read into a released buffer"},
	{name: "released while it is read into", notFound: "a literal that another function calls"},
	{name: "sent while it is written", notFound: "a literal that another function calls"},
	{name: "clone of a released buffer"},
	{name: "share of a released buffer"},
	{name: "share released twice"},
	{name: "owner released twice instead of its share"},
	{name: "share sent and released"},
	{name: "read into a shared buffer", notFound: "shares are not counted"},
	{name: "use after an answer"},
	{name: "use of what came back", notFound: "a literal that another function calls"},
	{name: "delivered and denied", notFound: "a literal that another function calls"},
	{name: "used by a closure of a fiber"},
	{name: "used after the end of the pool"},
	{name: "leak", notFound: "a leak"},
	{name: "leak after a receive", notFound: "a leak"},
	{name: "leak in a channel", notFound: "a leak"},
	{name: "leak of a share", notFound: "a leak"},
	{name: "slice written after release"},
	{name: "slice written after a send"},
	{name: "old slice written after append", notFound: "an Append that fits leaves the old slice valid"},
	{name: "shared bytes written", notFound: "shares are not counted"},
	{name: "select without HandOver"},
}

// The analyzer finds the simple programs of the corpus, and the table says which those are.
func TestCorpus(t *testing.T) {
	if testing.Short() {
		t.Skip("loads package buf and all that it imports")
	}
	dir := filepath.Join("..", "buf")
	src, err := os.ReadFile(filepath.Join(dir, "corpus_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	begin := regexp.MustCompile(`^\t\{name: "([^"]+)"`)
	var programs []string // by line
	name := ""
	for line := range strings.Lines(string(src)) {
		if m := begin.FindStringSubmatch(line); m != nil {
			name = m[1]
		}
		programs = append(programs, name)
	}
	found := make(map[string]string)
	for _, d := range run(t, vet.Buffers, dir, ".") {
		if d.file == "corpus_test.go" {
			found[programs[d.line-1]] = d.text
		}
	}
	known := make(map[string]bool)
	for _, c := range corpus {
		known[c.name] = true
		if text, ok := found[c.name]; ok != (c.notFound == "") {
			t.Errorf("%s: found is %v: %s", c.name, ok, text)
		}
	}
	for _, name := range programs {
		if name != "" && !known[name] {
			known[name] = true
			t.Errorf("the program %q is not in the table", name)
		}
	}
}

// diagnostic is a report. Its file name has no directory.
type diagnostic struct {
	file string
	line int
	text string
}

// run runs an analyzer on packages and their tests.
func run(t *testing.T, a *analysis.Analyzer, dir, pattern string) (all []diagnostic) {
	t.Helper()
	pkgs, err := packages.Load(&packages.Config{Mode: packages.LoadAllSyntax, Dir: dir, Tests: true}, pattern)
	if err != nil {
		t.Fatal(err)
	}
	if packages.PrintErrors(pkgs) > 0 {
		t.Fatal("the packages do not compile")
	}
	graph, err := checker.Analyze([]*analysis.Analyzer{a}, pkgs, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, act := range graph.Roots {
		if act.Err != nil {
			t.Error(act.Err)
		}
		for _, d := range act.Diagnostics {
			at := act.Package.Fset.Position(d.Pos)
			all = append(all, diagnostic{filepath.Base(at.Filename), at.Line, d.Message})
		}
	}
	return all
}
