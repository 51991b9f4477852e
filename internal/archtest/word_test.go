package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestWordIsCommittedInThreePlaces checks that Commit is called in one place for fibers, in one for goroutines and in
// one for the registrations of a Selector. A fourth place would mean another protocol.
func TestWordIsCommittedInThreePlaces(t *testing.T) {
	// Spec: PK-40 (only internal/park changes a word)
	want := []string{"internal/board Hook.Pin", "internal/park Guest.Park", "internal/sched Worker.settle"}
	files, err := Files(root(t))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, file := range files {
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") || strings.Contains(file, "testdata/") || Newer(file) {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root(t), filepath.FromSlash(file)), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range f.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && len(call.Args) == 0 {
					if sel, ok := call.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Commit" {
						got = append(got, filepath.ToSlash(filepath.Dir(file))+" "+funcName(fn))
					}
				}
				return true
			})
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("Commit is called in %q, want %q: park through one of these; a new place needs its states in "+
			"promela/word.pml, and a line here", got, want)
	}
}
