package vet

import (
	"go/ast"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/types/typeutil"
)

// Ranges finds loops over coir's iterators that use the value and ignore the error.
var Ranges = &analysis.Analyzer{
	Name: "coirrange",
	Doc: `find loops over coir's iterators that take the value and not the error

The iterators of coir that can be cut short yield a value and an error. If the context ends, the last pair is the zero
value and the error. coirrange reports a loop that has a variable for the value, and none for the error:

	for v := range c.All(ctx) { // write for v, err := range c.All(ctx)
		use(v) // after a cancel, v is a zero value that nobody has sent
	}

A loop with _ for the error is reported too. A loop without variables is not: it uses no value.

It looks at calls of functions and methods of coir's packages where they stand in the loop, and not at iterators that
come by a variable, or by a function of another package.`,
	URL:      "https://pkg.go.dev/" + module + "/vet",
	Requires: []*analysis.Analyzer{inspect.Analyzer},
	Run:      runRanges,
}

func runRanges(pass *analysis.Pass) (any, error) {
	nodes := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector)
	nodes.Preorder([]ast.Node{(*ast.RangeStmt)(nil)}, func(n ast.Node) {
		loop := n.(*ast.RangeStmt)
		if isBlank(loop.Key) || !isBlank(loop.Value) {
			return
		}
		call, ok := ast.Unparen(loop.X).(*ast.CallExpr)
		if !ok || !yieldsError(pass.TypesInfo.TypeOf(call)) {
			return
		}
		f, _ := typeutil.Callee(pass.TypesInfo, call).(*types.Func)
		if f == nil || f.Pkg() == nil || !strings.HasPrefix(pathOf(f.Pkg())+"/", module+"/") {
			return
		}
		v, of := types.ExprString(loop.Key), types.ExprString(call.Fun)
		pass.Reportf(loop.Pos(), "the loop drops the error of %s: the %s that comes with an error is a zero value that "+
			"nobody has sent; write for %s, err := range, and check err first", of, v, v)
	})
	return nil, nil
}

// isBlank reports whether a loop has no variable in this place, or only _.
func isBlank(x ast.Expr) bool {
	id, ok := x.(*ast.Ident)
	return x == nil || ok && id.Name == "_"
}

// yieldsError reports whether a type is an iter.Seq2 whose second value is an error.
func yieldsError(t types.Type) bool {
	if t == nil || !isNamed(t, "iter", "Seq2") {
		return false
	}
	args := types.Unalias(t).(*types.Named).TypeArgs()
	return args.Len() == 2 && types.Identical(args.At(1), types.Universe.Lookup("error").Type())
}
