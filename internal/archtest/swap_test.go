package archtest

import (
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestSwapsAreTheSame checks the copies of coro's Slot.swap. Operations write the swap out, to save a frame: see
// Coro.Enter and Task.BeginPark. Each copy must have the text of the method. After BeginPark, its form for a join and
// BeginYield, it must be the first statement, and the last must do what Task.EndPark does.
func TestSwapsAreTheSame(t *testing.T) {
	all, err := Files(root(t))
	if err != nil {
		t.Fatal(err)
	}
	want, copies := "", 0
	for _, file := range append([]string{"internal/coro/slot.go"}, all...) {
		if filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") || strings.Contains(file, "/testdata/") ||
			Newer(file) {
			continue
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, filepath.Join(root(t), file), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		begun := map[ast.Node]bool{} // the calls that begin a switch, and are followed by one
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.IfStmt:
				switch cond := textOf(n.Cond); {
				case strings.HasSuffix(cond, ".Odd"):
					n := *n
					n.Init = nil
					got := textOf(&n)
					if want == "" {
						want = got
					}
					copies++
					if got != want {
						t.Errorf("%s: the swap is\n%s\nwant it as in Slot.swap:\n%s", set.Position(n.Pos()), got, want)
					}
				case cond == "s != nil" && n.Init != nil:
					if init, ok := n.Init.(*ast.AssignStmt); ok && swapsFirst(n.Body.List) {
						begun[init.Rhs[0]] = true
					}
				}
			case *ast.ReturnStmt: // a function that begins a switch for its caller may return what another has begun
				for _, x := range n.Results {
					begun[x] = true
				}
			case *ast.CallExpr:
				if sel, ok := n.Fun.(*ast.SelectorExpr); ok && !begun[n] &&
					slices.Contains([]string{"BeginPark", "BeginYield", "beginParkFor"}, sel.Sel.Name) {
					t.Errorf("%s: %s is not followed by the swap and EndPark: see Task.Park", set.Position(n.Pos()), sel.Sel.Name)
				}
			}
			return true
		})
	}
	if copies < 10 {
		t.Errorf("%d swaps were found, want at least the 10 of the operations", copies)
	}
}

// swapsFirst reports whether a list of statements begins with a swap, and ends with the end of a park or a yield.
func swapsFirst(list []ast.Stmt) bool {
	swap, ok := list[0].(*ast.IfStmt)
	end := textOf(list[len(list)-1])
	return ok && textOf(swap.Cond) == "s.Odd" && (strings.HasSuffix(end, ".EndPark()") || strings.HasSuffix(end, ".settle()"))
}

// textOf returns the source text of a part of a file, without comments.
func textOf(n ast.Node) string {
	var b strings.Builder
	_ = printer.Fprint(&b, token.NewFileSet(), n)
	return b.String()
}
