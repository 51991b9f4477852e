package archtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/coir-go/coir/internal/document"
)

const (
	module  = "github.com/coir-go/coir"
	counted = module + "/internal/archtest/testdata/counted"
)

// sharing says who else writes to each counted word: the more writers there are on a large machine, the worse the word
// scales. The test fails for a word that is not listed, and for one that no operation writes.
var sharing = map[string]string{
	"coir.Fiber.mu":             fiber,
	"coir.Fiber.outcome":        fiber,
	"coir.Fiber.waitScope":      fiber,
	"park.Parker.word":          fiber,
	"channel.Core.mu":           channel,
	"coir.Nursery.pending":      channel,
	"coir.coldNursery.childMu":  channel,
	"coir.scope.state":          channel,
	"sched.runNext.seq":         worker,
	"sched.ring.word":           worker,
	"sched.Worker.state":        worker,
	"sched.Worker.place":        worker,
	"clock.shard.mu":            worker, // and the pass that fires what is due
	"clock.shard.covered":       worker,
	"clock.Real.mu":             all,
	"sched.Scheduler.active":    all,
	"sched.Scheduler.mu":        all,
	"sched.Scheduler.now":       all,
	"sched.Scheduler.searchers": all,
	"sched.counters.frames":     all,
	"sched.counters.slept":      all,
	"sched.counters.woken":      all,
	"sched.list.mu":             all,
	"sched.list.n":              all,
	"sched.pool.mu":             all,
	"sched.shard.mu":            all, // one of 64
	"sched.sieved":              all, // one of many
}

const (
	fiber   = "a fiber, its wakers and joiners"
	channel = "users of a channel or nursery"
	worker  = "a worker, and thieves"
	all     = "all workers"
)

// The copies have no monitor. Its ticks take work from a worker that the machine keeps from running, so with it the
// counts would depend on time.
const tick, noTick = "\ttick      = 10 * time.Millisecond\n", "\ttick      = 1000 * time.Hour\n"

// overlay writes copies of the library's files that use package counted instead of sync and sync/atomic, and have no
// monitor, and an overlay file for the go command.
func overlay(root, dir string) (string, error) {
	replace := make(map[string]string)
	ticks := 0
	for _, pkg := range libraryPackages {
		files, err := filepath.Glob(filepath.Join(root, pkg, "*.go"))
		if err != nil {
			return "", err
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				return "", err
			}
			with := text
			for _, name := range []string{"sync", "sync/atomic"} {
				with = bytes.Replace(with, []byte("\n\t"+strconv.Quote(name)+"\n"),
					fmt.Appendf(nil, "\n\t%s %q\n", filepath.Base(name), counted), 1)
			}
			ticks += bytes.Count(with, []byte(tick))
			with = bytes.ReplaceAll(with, []byte(tick), []byte(noTick))
			if bytes.Equal(text, with) {
				continue
			}
			to := filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
			if err := os.WriteFile(to, with, 0o600); err != nil {
				return "", err
			}
			replace[file] = to
		}
	}
	if ticks != 1 {
		return "", fmt.Errorf("%d files have the line %q, with which the monitor is turned off", ticks, tick)
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, list, 0o600)
}

// libraryPackages are the packages with words that workers write.
var libraryPackages = []string{
	".", "internal/channel", "internal/sched", "internal/park", "internal/wait", "internal/flavor", "internal/clock",
	"internal/xatomic",
}

// A site is a call of a method that writes.
type site struct {
	file   string
	line   int
	method string
}

// sites finds the word that each call in a package writes to: the field or the variable whose method is called.
func sites(root, pkg string, imports types.Importer, fset *token.FileSet) (map[site]string, error) {
	dir := filepath.Join(root, pkg)
	listed, err := build.ImportDir(dir, 0)
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	for _, name := range listed.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	info := &types.Info{
		Defs: make(map[*ast.Ident]types.Object), Uses: make(map[*ast.Ident]types.Object),
		Selections: make(map[*ast.SelectorExpr]*types.Selection),
	}
	conf := types.Config{Importer: imports}
	checked, err := conf.Check(module+"/"+pkg, fset, files, info)
	if err != nil {
		return nil, err
	}
	owners := fieldOwners(files, info)
	found := make(map[site]string)
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			var word types.Object
			switch x := ast.Unparen(method.X).(type) {
			case *ast.SelectorExpr:
				if s := info.Selections[x]; s != nil {
					word = s.Obj()
				}
			case *ast.IndexExpr:
				if x, ok := x.X.(*ast.SelectorExpr); ok && info.Selections[x] != nil {
					word = info.Selections[x].Obj()
				}
			case *ast.CallExpr:
				if f, ok := x.Fun.(*ast.Ident); ok {
					word = info.Uses[f]
				}
			case *ast.Ident:
				word = info.Uses[x]
			}
			if v, ok := word.(*types.Var); ok {
				word = v.Origin()
			}
			if word != nil {
				at := fset.Position(method.Sel.Pos())
				found[site{at.Filename, at.Line, method.Sel.Name}] = checked.Name() + "." + owners[word] + word.Name()
			}
			return true
		})
	}
	return found, nil
}

// fieldOwners returns the names of the structs that declare the fields.
func fieldOwners(files []*ast.File, info *types.Info) map[types.Object]string {
	owners := make(map[types.Object]string)
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if s, ok := spec.Type.(*ast.StructType); ok {
					for _, field := range s.Fields.List {
						for _, name := range field.Names {
							owners[info.Defs[name]] = spec.Name.Name + "."
						}
					}
				}
			}
			return true
		})
	}
	return owners
}

// A count is how often an operation writes to a word: locks taken, read-modify-writes, stores.
type count struct{ locks, changes, stores float64 }

func (c *count) add(method string, n float64) {
	switch method {
	case "Lock", "TryLock":
		c.locks += n
	case "Store":
		c.stores += n
	default:
		c.changes += n
	}
}

// near reports whether two counts are the same, one of which is rounded.
func (c count) near(d count) bool {
	const much = 0.4
	return math.Abs(c.locks-d.locks) < much && math.Abs(c.changes-d.changes) < much && math.Abs(c.stores-d.stores) < much
}

// half rounds to halves.
func half(n float64) float64 { return math.Round(2*n) / 2 }

func (c count) rounded() count { return count{half(c.locks), half(c.changes), half(c.stores)} }

// An operation has rows in the table, one for each word.
type operation struct {
	name   string
	words  map[string]count
	agreed string // how many of its chunks wrote as often
}

// countWords builds and runs the program of testdata/words over a library that counts.
func countWords(t *testing.T, root string) []operation {
	t.Helper()
	dir := t.TempDir()
	list, err := overlay(root, dir)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "words")
	cmd := exec.Command("go", "build", "-overlay", list, "-o", program, "./internal/archtest/testdata/words")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := exec.Command(program).Output()
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Operation string
		Turns     int
		Agreed    string
		Writes    []struct {
			File   string
			Line   int
			Method string
			Times  int
		}
	}
	if err := json.Unmarshal(out, &rows); err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", exports(t, root))
	at := make(map[site]string)
	for _, pkg := range libraryPackages {
		found, err := sites(root, pkg, imports, fset)
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(at, found)
	}
	var ops []operation
	for _, r := range rows {
		op := operation{r.Operation, make(map[string]count), r.Agreed}
		for _, w := range r.Writes {
			word, ok := at[site{w.File, w.Line, w.Method}]
			if !ok && half(float64(w.Times)/float64(r.Turns)) > 0 {
				t.Errorf("%s:%d: sites finds no word for this %s: write it as a call of a method of a field or a variable",
					w.File, w.Line, w.Method)
			}
			sum := op.words[word]
			sum.add(w.Method, float64(w.Times)/float64(r.Turns))
			op.words[word] = sum
		}
		ops = append(ops, op)
	}
	return ops
}

// exports returns a lookup of the export data of the packages that the library imports.
func exports(t *testing.T, root string) importer.Lookup {
	t.Helper()
	cmd := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", ".")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		files[path] = file
	}
	return func(path string) (io.ReadCloser, error) { return os.Open(files[path]) }
}

const (
	wordsFile  = "docs/design/0012-shared-words.md"
	wordsBegin = "<!-- counted by TestSharedWords -->\n"
	wordsEnd   = "<!-- end -->\n"
)

// tables prints what was counted: a summary, and the words.
func tables(ops []operation) string {
	var b strings.Builder
	kinds := []string{fiber, channel, worker, all}
	fmt.Fprintf(&b, "\n| writes of one operation, by who else writes there | %s |\n|---|---|---|---|---|\n",
		strings.Join(kinds, " | "))
	for _, op := range ops {
		sums := make(map[string]float64)
		for word, c := range op.words {
			c = c.rounded()
			sums[sharing[word]] += c.locks + c.changes + c.stores
		}
		fmt.Fprintf(&b, "| %s |", op.name)
		for _, kind := range kinds {
			fmt.Fprintf(&b, " %g |", sums[kind])
		}
		b.WriteString("\n")
	}
	b.WriteString("\n| operation | word | written by | locks | changes | stores |\n|---|---|---|---|---|---|\n")
	for _, op := range ops {
		for _, word := range slices.Sorted(maps.Keys(op.words)) {
			if c := op.words[word].rounded(); c != (count{}) {
				fmt.Fprintf(&b, "| %s | %s | %s | %g | %g | %g |\n", op.name, word, sharing[word], c.locks, c.changes, c.stores)
			}
		}
	}
	b.WriteString("\n")
	return b.String()
}

// readTables reads the second table of tables.
func readTables(text string) ([]operation, error) {
	var ops []operation
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) != 6 {
			continue
		}
		var n [3]float64
		var err error
		for i := range n {
			if n[i], err = strconv.ParseFloat(strings.TrimSuffix(cells[3+i], " |"), 64); err != nil {
				break
			}
		}
		if err != nil {
			continue // the heading
		}
		name := strings.TrimPrefix(cells[0], "| ")
		if len(ops) == 0 || ops[len(ops)-1].name != name {
			ops = append(ops, operation{name: name, words: make(map[string]count)})
		}
		ops[len(ops)-1].words[cells[1]] = count{n[0], n[1], n[2]}
	}
	if again := tables(ops); again != text {
		return nil, fmt.Errorf("the tables are not as they are printed:\n%s", again)
	}
	return ops, nil
}

// The tables of the document are those of a library that counts its writes.
func TestSharedWords(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	root := root(t)
	ops := countWords(t, root)
	for _, op := range ops {
		for word, c := range op.words {
			if _, ok := sharing[word]; !ok && c.rounded() != (count{}) {
				t.Errorf("%s writes %s: say in sharing who writes it", op.name, word)
			}
		}
	}
	file := filepath.Join(root, filepath.FromSlash(wordsFile))
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	now, old, err := document.Replace(string(text), wordsBegin, wordsEnd, tables(ops))
	if err != nil {
		t.Fatalf("%s: %v", wordsFile, err)
	}
	if *update {
		if err := os.WriteFile(file, []byte(now), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	const again = "if the change is meant, run `make generate` and say in the document what it costs"
	written, err := readTables(old)
	if err != nil {
		t.Fatalf("%s: %v; %s", wordsFile, err, again)
	}
	for word := range sharing {
		if !slices.ContainsFunc(written, func(op operation) bool { return op.words[word] != (count{}) }) {
			t.Errorf("no operation writes %s: take it out of sharing", word)
		}
	}
	if a, b := len(written), len(ops); a != b {
		t.Fatalf("%s has %d operations, %d were counted; %s", wordsFile, a, b, again)
	}
	for i, op := range ops {
		words := slices.Collect(maps.Keys(op.words))
		for word := range written[i].words {
			if !slices.Contains(words, word) {
				words = append(words, word)
			}
		}
		for _, word := range words {
			if got, want := op.words[word], written[i].words[word]; op.name != written[i].name || !got.near(want) {
				t.Errorf("%s, %s: locks, changes and stores %.2f in %s chunks, in %s %.2f; %s",
					op.name, word, got, op.agreed, wordsFile, want, again)
			}
		}
	}
}
