package vet

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/ctrlflow"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/cfg"
	"golang.org/x/tools/go/types/typeutil"
)

// Cancels finds cancel functions of coir's contexts that are not called. The check lostcancel of go vet knows only
// those of package context.
var Cancels = &analysis.Analyzer{
	Name: "coircancel",
	Doc: `find cancel functions of coir.WithCancel and the like that are not called

The scope that coir.WithCancel, coir.WithCancelCause, coir.WithTimeout, coir.WithDeadline or coir.WithGrace returns
lives, with its timer, until its cancel function is called, or the scope around it ends. coircancel reports a cancel
function that is given to _, or that a path to the end of the function does not mention:

	ctx, cancel := coir.WithTimeout(ctx, time.Second)
	if err := first(ctx); err != nil {
		return err // without cancel: write defer cancel() after the call of WithTimeout
	}
	defer cancel()

Each mention of the variable counts as a call: it may be passed on, or kept.`,
	URL:      "https://pkg.go.dev/" + module + "/vet",
	Requires: []*analysis.Analyzer{inspect.Analyzer, ctrlflow.Analyzer},
	Run:      runCancels,
}

// makesCancel has the functions whose second result is a cancel function.
var makesCancel = []string{
	module + ".WithCancel", module + ".WithCancelCause", module + ".WithTimeout", module + ".WithDeadline",
	module + ".WithGrace",
}

func runCancels(pass *analysis.Pass) (any, error) {
	cfgs := pass.ResultOf[ctrlflow.Analyzer].(*ctrlflow.CFGs)
	nodes := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector)
	nodes.Preorder([]ast.Node{(*ast.FuncDecl)(nil), (*ast.FuncLit)(nil)}, func(n ast.Node) {
		switch fn := n.(type) {
		case *ast.FuncDecl:
			if fn.Body == nil {
				return
			}
			c := canceller{pass, fn.Body, cfgs.FuncDecl(fn)}
			c.check(fn.Recv == nil && fn.Name.Name == "main" && pass.Pkg.Name() == "main")
		case *ast.FuncLit:
			c := canceller{pass, fn.Body, cfgs.FuncLit(fn)}
			c.check(false)
		}
	})
	return nil, nil
}

// canceller checks one function.
type canceller struct {
	pass  *analysis.Pass
	body  *ast.BlockStmt
	graph *cfg.CFG
}

// check checks the cancel functions that are made in the body, outside of the literals in it. If exits is true, the
// program ends with the function.
func (c *canceller) check(exits bool) {
	ast.Inspect(c.body, func(n ast.Node) bool {
		var to ast.Expr
		var from []ast.Expr
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.AssignStmt:
			if len(n.Lhs) == 2 {
				to, from = n.Lhs[1], n.Rhs
			}
		case *ast.ValueSpec:
			if len(n.Names) == 2 {
				to, from = n.Names[1], n.Values
			}
		}
		if len(from) != 1 {
			return true
		}
		call, ok := ast.Unparen(from[0]).(*ast.CallExpr)
		if !ok {
			return true
		}
		name := nameOf(typeutil.StaticCallee(c.pass.TypesInfo, call))
		id, ok := to.(*ast.Ident)
		if !ok || !slices.Contains(makesCancel, name) {
			return true
		}
		name = strings.TrimPrefix(name, module+".")
		if id.Name == "_" {
			c.pass.Reportf(id.Pos(), "the cancel function of coir.%s is discarded: call it when the scope is no longer "+
				"needed, as by defer cancel()", name)
		} else if v, ok := c.pass.TypesInfo.ObjectOf(id).(*types.Var); ok && !exits && c.mine(v, n.Pos()) {
			c.follow(n, v, name)
		}
		return true
	})
}

// mine reports whether a variable belongs to this function and is not a result. Other variables may be used anywhere,
// and so may a variable that is mentioned in a literal that was made before since.
func (c *canceller) mine(v *types.Var, since token.Pos) bool {
	if v.Pos() < c.body.Pos() || v.Pos() >= c.body.End() {
		return false
	}
	ours := true
	ast.Inspect(c.body, func(n ast.Node) bool {
		if lit, ok := n.(*ast.FuncLit); ok && lit.Pos() < since && c.mentions(lit, v) {
			ours = false
		}
		return ours
	})
	return ours
}

// mentions reports whether a node mentions a variable, other than by an assignment to it.
func (c *canceller) mentions(n ast.Node, v *types.Var) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, x := range slices.Concat(n.Lhs, n.Rhs) {
				if id, ok := x.(*ast.Ident); !ok || !slices.Contains(n.Lhs, x) || c.pass.TypesInfo.ObjectOf(id) != v {
					found = found || c.mentions(x, v)
				}
			}
			return false
		case *ast.Ident:
			found = found || c.pass.TypesInfo.Uses[n] == v
		}
		return !found
	})
	return found
}

// assigns reports whether a node assigns another value to a variable.
func (c *canceller) assigns(n ast.Node, v *types.Var) bool {
	a, ok := n.(*ast.AssignStmt)
	return ok && slices.ContainsFunc(a.Lhs, func(x ast.Expr) bool {
		id, ok := x.(*ast.Ident)
		return ok && c.pass.TypesInfo.ObjectOf(id) == v
	})
}

// follow follows all paths from the place where a cancel function is made, and reports it if one of them ends without
// mentioning it.
func (c *canceller) follow(made ast.Node, v *types.Var, name string) {
	type place struct {
		block *cfg.Block
		index int
	}
	var next []place
	for _, b := range c.graph.Blocks {
		if i := slices.Index(b.Nodes, made); i >= 0 && b.Live {
			next = append(next, place{b, i + 1})
		}
	}
	seen := make(map[*cfg.Block]bool)
	for len(next) > 0 {
		p := next[len(next)-1]
		next = next[:len(next)-1]
		used := false
		for _, n := range p.block.Nodes[p.index:] {
			if used = c.mentions(n, v); used {
				break
			}
			if c.assigns(n, v) {
				c.report(made, v, name, n.Pos(), "another is assigned to it")
				return
			}
		}
		if used {
			continue
		}
		if ret := p.block.Return(); ret != nil {
			c.report(made, v, name, ret.Pos(), "the function ends")
			return
		}
		for _, b := range p.block.Succs {
			if !seen[b] {
				seen[b] = true
				next = append(next, place{b, 0})
			}
		}
	}
}

func (c *canceller) report(made ast.Node, v *types.Var, name string, end token.Pos, how string) {
	line, arg := c.pass.Fset.Position(end).Line, ""
	if name == "WithCancelCause" {
		arg = "nil"
	}
	c.pass.Report(analysis.Diagnostic{
		Pos: made.Pos(), End: made.End(),
		Message: fmt.Sprintf("%s, the cancel function of coir.%s, is not called on every path: at line %d %s; "+
			"write defer %s(%s) here", v.Name(), name, line, how, v.Name(), arg),
		Related: []analysis.RelatedInformation{{Pos: end, Message: "here it has not been called"}},
	})
}
