package clock

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every function of the package carries the pragma that the package comment speaks of. The race detector reports an access
// only if both sides are instrumented, so one that is forgotten can stay unseen until the second.
func TestEveryFunctionIsNorace(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				checked++
				if n.Doc == nil || !slices.ContainsFunc(n.Doc.List, func(c *ast.Comment) bool { return c.Text == "//go:norace" }) {
					t.Errorf("%s: %s lacks //go:norace", fset.Position(n.Pos()), n.Name.Name)
				}
			case *ast.FuncLit:
				t.Errorf("%s: a function literal cannot carry //go:norace; name it", fset.Position(n.Pos()))
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.Ident); ok && (f.Name == "copy" || f.Name == "append") {
					t.Errorf("%s: %s is instrumented even under //go:norace", fset.Position(n.Pos()), f.Name)
				}
			}
			return true
		})
	}
	if checked == 0 {
		t.Fatal("no function found")
	}
}
