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

// wordCalls lists who may commit a wait, and who may use the short forms of the two transitions: ArmParked, which arms
// and commits in one store, and ClaimParked, which ends a wait in one CAS.
var wordCalls = map[string][]string{
	"Commit": {"internal/board Hook.Pin", "internal/park Guest.Park", "internal/sched Worker.settle"},
	"ArmParked": {
		". Chan.recvGuest", ". Chan.sendGuest", ". Fiber.takePlace", ". async.do", "internal/park Guest.ArmParked",
	},
	"ClaimParked": {"internal/channel Chan.Put", "internal/channel Chan.Take", "internal/wait Node.ClaimParked"},
}

// TestWordIsCommittedInKnownPlaces checks that only the functions in wordCalls commit a wait or use the short forms. A
// further one would need its own argument, and perhaps another protocol.
func TestWordIsCommittedInKnownPlaces(t *testing.T) {
	// Spec: PK-40 (only internal/park changes a word)
	files, err := Files(root(t))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
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
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				sel, ok := call.Fun.(*ast.SelectorExpr)
				if !ok || wordCalls[sel.Sel.Name] == nil || sel.Sel.Name == "Commit" && len(call.Args) > 0 {
					return true
				}
				by := filepath.ToSlash(filepath.Dir(file)) + " " + funcName(fn)
				got[sel.Sel.Name] = append(got[sel.Sel.Name], by)
				return true
			})
		}
	}
	for name, want := range wordCalls {
		slices.Sort(got[name])
		if !slices.Equal(got[name], want) {
			t.Errorf("%s is called in %q, want %q: park through one of these; a new place needs its states in "+
				"promela/word.pml, and a line here", name, got[name], want)
		}
	}
}
