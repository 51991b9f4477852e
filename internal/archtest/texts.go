package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Unprefixed returns the texts of errors and panics, in the package in dir, that do not begin with prefix. It checks
// what errors.New, fmt.Errorf, panic and the methods called Error are given or return, if that begins with a literal.
// An Errorf that begins with %w has the prefix of the error that it wraps.
func Unprefixed(dir, prefix string) ([]string, error) {
	var found []string
	check := func(at token.Position, e ast.Expr) {
		text, ok := leading(e)
		if ok && !strings.HasPrefix(text, prefix) && !strings.HasPrefix(text, "%w") {
			found = append(found, fmt.Sprintf("%s: %s", filepath.Base(at.Filename), text))
		}
	}
	err := eachDecl(dir, func(at token.Position, decl ast.Decl) {
		fn, _ := decl.(*ast.FuncDecl)
		method := fn != nil && fn.Recv != nil && fn.Name.Name == "Error"
		ast.Inspect(decl, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if f := source(n.Fun); f == "panic" || f == "errors.New" || f == "fmt.Errorf" {
					check(at, n.Args[0])
				}
			case *ast.ReturnStmt:
				if method && len(n.Results) == 1 {
					check(at, n.Results[0])
				}
			}
			return true
		})
	})
	slices.Sort(found)
	return slices.Compact(found), err
}

// leading returns the string literal that the value of e begins with.
func leading(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, e.Kind == token.STRING && err == nil
	case *ast.BinaryExpr:
		return leading(e.X)
	case *ast.CallExpr:
		if f := source(e.Fun); len(e.Args) > 0 && (f == "fmt.Sprint" || f == "fmt.Sprintf") {
			return leading(e.Args[0])
		}
	}
	return "", false
}
