package archtest

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// channelImports are the only packages of the library that package channel may import: no scheduler, no coroutines, no
// fibers.
var channelImports = []string{
	"internal/clock", "internal/flavor", "internal/invariant", "internal/park", "internal/race", "internal/wait",
	"internal/xatomic",
}

// TestChannelReadiesNoParker checks that the code under a channel's lock readies no parker. It does not know its
// waiters; it returns those that must be readied after unlocking. From package park it calls only functions that read a
// reason.
//
// Spec: CH-44 (channels do not touch queues or workers)
func TestChannelReadiesNoParker(t *testing.T) {
	root := root(t)
	imports, err := Imports(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range imports["internal/channel"] {
		if own, ours := strings.CutPrefix(path, Module); ours {
			if own = strings.TrimPrefix(own, "/"); !slices.Contains(channelImports, own) {
				t.Errorf("internal/channel imports %s: move what needs it to the root package, or add it to "+
					"channelImports in internal/archtest/channel_test.go", path)
			}
		}
	}
	for _, call := range methodsCalled(t, root, "internal/channel", Module+"/internal/park") {
		if call.method != "Reason.Kind" {
			t.Errorf("%s: internal/channel calls %s: return the parker, and let the caller ready it", call.at, call.method)
		}
	}
}

// TestMethodsCalled checks that methodsCalled finds calls that ready a parker, in a package that has some.
func TestMethodsCalled(t *testing.T) {
	var found []string
	for _, call := range methodsCalled(t, root(t), "internal/sched", Module+"/internal/park") {
		found = append(found, call.method)
	}
	for _, want := range []string{"Parker.MakeReady", "Parker.Commit", "Parker.Owner"} {
		if !slices.Contains(found, want) {
			t.Errorf("internal/sched calls %s, which was not found: %v", want, found)
		}
	}
}

type methodCall struct {
	at     token.Position
	method string // with the type that has it
}

// methodsCalled finds the places where a package calls, or uses as a value, a method that another package declares.
func methodsCalled(t *testing.T, root, pkg, of string) (calls []methodCall) {
	t.Helper()
	fset := token.NewFileSet()
	names, err := filepath.Glob(filepath.Join(root, pkg, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	info := &types.Info{Selections: make(map[*ast.SelectorExpr]*types.Selection)}
	conf := types.Config{Importer: importer.ForCompiler(fset, "gc", exports(t, root))}
	if _, err := conf.Check(Module+"/"+pkg, fset, files, info); err != nil {
		t.Fatal(err)
	}
	for x, s := range info.Selections {
		f, ok := s.Obj().(*types.Func)
		if !ok || f.Pkg() == nil || f.Pkg().Path() != of {
			continue
		}
		owner := f.Signature().Recv().Type()
		if p, ok := owner.(*types.Pointer); ok {
			owner = p.Elem()
		}
		if named, ok := owner.(*types.Named); ok {
			calls = append(calls, methodCall{fset.Position(x.Pos()), named.Obj().Name() + "." + f.Name()})
		}
	}
	return calls
}
