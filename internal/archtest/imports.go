package archtest

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Layers is the import order, lowest first. A package imports only packages of lower layers: two packages of one layer
// do not import each other. A name that ends in /... stands for every package under it.
//
// Test files are exempt: a test may import the model or the suite that it needs, and the compiler forbids cycles.
var Layers = []Layer{
	{"sizes of tests, documents", []string{"internal/soak", "internal/document"}},
	{"exploration", []string{"internal/interleave", "internal/search", "internal/replay", "internal/mutant"}},
	{"detector", []string{"internal/race"}},
	{"ground", []string{
		"internal/invariant", "internal/hide", "internal/xatomic", "internal/bubble", "internal/policy",
		"internal/chart", "internal/chromium", "internal/source", "explore", "snapshot", "cmd/coir/internal/coir",
	}},
	{"mechanism", []string{"internal/coro", "internal/park", "internal/clock", "internal/stdctx", "internal/report"}},
	{"waiting", []string{"internal/wait"}},
	{"stores", []string{"internal/flavor"}},
	{"machine", []string{"internal/sched", "internal/channel", "internal/model"}},
	{"lists", []string{"internal/board"}},
	{"face", []string{"."}},
	{"locks and pace", Satellites[:2]}, // on which other satellites are built
	{"satellites", Satellites[2:]},
	{"satellites on satellites", []string{"buf/shm"}},
	{"users of the face", []string{"sim", "internal/archtest", "internal/history"}},
	{"programs", []string{ // which have a cmd each
		"examples/fanout", "examples/etl", "examples/hub", "examples/jobs", "examples/logs", "examples/webhook",
		"examples/chat",
	}},
	{"edits of the standard library, the format of -json", []string{
		"cmd/coir/internal/overlay", "cmd/coir/internal/events",
	}},
	{"the command", []string{"cmd/coir"}},
	{"measurements", []string{"cmd/coir/measure/internal/build", "cmd/coir/internal/services"}},
	{"peers", []string{"cmd/coir/measure/internal/peers"}},
	{"outside", []string{
		"examples/...", "internal/archtest/figures", "internal/archtest/importmap", "internal/archtest/specmap", "internal/programs",
		"internal/supply", "cmd/coir/...",
	}},
}

// Satellites are the packages that are written against the exported API of the root alone. A satellite that needs an
// internal package shows that the exported API lacks something.
var Satellites = []string{"locks", "pace", "pubsub", "supervise", "desk", "stream", "netio", "inspect", "buf"}

// A Layer is one step of the import order.
type Layer struct {
	Name     string
	Packages []string // directories relative to the root; "." is the root package
}

// layerOf returns the index of the layer that a package directory belongs to, or -1.
func layerOf(dir string) int {
	return slices.IndexFunc(Layers, func(l Layer) bool {
		return slices.ContainsFunc(l.Packages, func(p string) bool {
			if under, ok := strings.CutSuffix(p, "/..."); ok {
				return dir == under || strings.HasPrefix(dir, under+"/")
			}
			return dir == p
		})
	})
}

// Imports returns the import paths of every package of the root module, by directory, without test files. It ignores
// build tags: an import on any platform counts.
func Imports(root string) (map[string][]string, error) {
	imports := make(map[string][]string)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path != root && skipDir(path, d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		rel, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(rel)
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		found := imports[dir] // listed even if it imports nothing, so that the table must have it
		for _, spec := range file.Imports {
			p, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if !slices.Contains(found, p) {
				found = append(found, p)
			}
		}
		imports[dir] = found
		return nil
	})
	return imports, err
}

// skipDir reports whether a directory is outside the root module: a nested module, or a name that the go command skips.
func skipDir(path, name string) bool {
	if name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
		return true
	}
	_, err := os.Stat(filepath.Join(path, "go.mod"))
	return err == nil
}
