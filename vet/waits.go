package vet

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/types/typeutil"
)

// Waits finds waits outside of coir in fibers.
var Waits = &analysis.Analyzer{
	Name: "coirwait",
	Doc: `find waits of fibers that coir does not know of

A fiber that waits for a time, a native channel or a context outside of coir holds its worker, does not end when it is
cancelled, and stops a simulation. coirwait reports in the functions of fibers, and in functions of the same package
that these call:

	time.Sleep(d)              // coir.Sleep(ctx, d)
	<-ctx.Done()               // coir.WaitCancel(ctx)
	<-time.After(d)            // coir.Sleep, or coir.After in a coir.Select
	v := <-c, for v := range c // a coir.Chan, or coir.FromChan
	c <- v                     // a coir.Chan; if c was made without a buffer
	select { ... }             // coir.Select; not if it has a default
	wg.Wait()                  // a nursery; sync.WaitGroup
	cond.Wait()                // a coir.Cond; sync.Cond

A wait in a function that is given to coir.Blocking, in a goroutine, or in a child with coir.WithGoroutine() is not
reported. Neither are locks, files and the network: a fiber may block there, and docs/guide/io.md says what that
costs.`,
	URL:      "https://pkg.go.dev/" + module + "/vet",
	Requires: []*analysis.Analyzer{inspect.Analyzer},
	Run:      runWaits,
}

// starters are the functions that call an argument in a fiber, with the index of that argument, or of the first of
// several.
var starters = map[string]int{
	module + ".Run":         1,
	module + ".Runtime.Run": 1,
	module + ".Nursery.Go":  1,
	module + ".Start":       2,
	module + ".Ordered.Go":  3,
	module + ".Map":         3,
	module + ".ForEach":     3,
	module + ".Race":        1,
	module + "/sim.Test":    1,
	module + "/sim.Run":     1,
	module + "/sim.Explore": 0,
	module + "/sim.Replay":  1,
	module + "/sim.Drawn":   1,
}

// blockers are the functions that wait, with the recommended replacements.
var blockers = map[string]string{
	"time.Sleep":          "coir.Sleep(ctx, d)",
	"sync.WaitGroup.Wait": "children of a nursery in place of goroutines: Run waits for them",
	"sync.Cond.Wait":      "a coir.Cond",
}

// waiter looks for waits in one package.
type waiter struct {
	pass    *analysis.Pass
	info    *types.Info
	bodies  map[*types.Func]*ast.BlockStmt
	makes   map[types.Object]buffering
	visited map[*ast.BlockStmt]bool
	start   token.Pos // where the fiber is started
}

// buffering says what is known about the channels of a variable, from calls of make.
type buffering uint8

const (
	unbuffered buffering = 1 << iota
	buffered             // or unknown
)

func runWaits(pass *analysis.Pass) (any, error) {
	w := &waiter{
		pass: pass, info: pass.TypesInfo, bodies: make(map[*types.Func]*ast.BlockStmt),
		makes: make(map[types.Object]buffering), visited: make(map[*ast.BlockStmt]bool),
	}
	nodes := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector)
	nodes.Preorder([]ast.Node{
		(*ast.FuncDecl)(nil), (*ast.AssignStmt)(nil), (*ast.ValueSpec)(nil), (*ast.KeyValueExpr)(nil),
	}, w.collect)
	nodes.Preorder([]ast.Node{(*ast.CallExpr)(nil), (*ast.CompositeLit)(nil)}, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.CallExpr:
			w.starts(n)
		case *ast.CompositeLit:
			w.child(n)
		}
	})
	return nil, nil
}

// collect records the bodies of functions, and which channels are made with a buffer.
func (w *waiter) collect(n ast.Node) {
	switch n := n.(type) {
	case *ast.FuncDecl:
		if f, ok := w.info.Defs[n.Name].(*types.Func); ok && n.Body != nil {
			w.bodies[f] = n.Body
		}
	case *ast.AssignStmt:
		if len(n.Lhs) == len(n.Rhs) {
			for i, x := range n.Lhs {
				w.assigned(x, n.Rhs[i])
			}
		}
	case *ast.ValueSpec:
		if len(n.Names) == len(n.Values) {
			for i, x := range n.Names {
				w.assigned(x, n.Values[i])
			}
		}
	case *ast.KeyValueExpr:
		w.assigned(n.Key, n.Value)
	}
}

// assigned records whether the value assigned to a variable or a field is a channel with a buffer.
func (w *waiter) assigned(to, value ast.Expr) {
	v := w.variable(to)
	if v == nil || !isChan(v.Type()) {
		return
	}
	how := buffered
	if call, ok := ast.Unparen(value).(*ast.CallExpr); ok {
		if f, ok := ast.Unparen(call.Fun).(*ast.Ident); ok && w.info.Uses[f] == types.Universe.Lookup("make") {
			if len(call.Args) == 1 || isZero(w.info.Types[call.Args[1]].Value) {
				how = unbuffered
			}
		}
	}
	w.makes[v] |= how
}

func isZero(v constant.Value) bool {
	return v != nil && v.Kind() == constant.Int && constant.Sign(v) == 0
}

func isChan(t types.Type) bool {
	_, ok := t.Underlying().(*types.Chan)
	return ok
}

// variable returns the variable or field that an expression names, or nil.
func (w *waiter) variable(x ast.Expr) *types.Var {
	var id *ast.Ident
	switch x := ast.Unparen(x).(type) {
	case *ast.Ident:
		id = x
	case *ast.SelectorExpr:
		id = x.Sel
	default:
		return nil
	}
	v, _ := w.info.ObjectOf(id).(*types.Var)
	return v
}

// starts inspects the functions that a call starts as fibers.
func (w *waiter) starts(call *ast.CallExpr) {
	f := typeutil.StaticCallee(w.info, call)
	first, ok := starters[nameOf(f)]
	if !ok || first >= len(call.Args) || call.Ellipsis.IsValid() || w.onGoroutine(call) {
		return
	}
	last := first
	if nameOf(f) == module+".Race" {
		last = len(call.Args) - 1
	}
	for _, fn := range call.Args[first : last+1] {
		w.fiber(call.Pos(), fn)
	}
}

// onGoroutine reports whether a child has the option WithGoroutine, or an option whose value is not known here.
func (w *waiter) onGoroutine(call *ast.CallExpr) bool {
	return slices.ContainsFunc(call.Args, func(x ast.Expr) bool {
		if n, ok := types.Unalias(w.info.TypeOf(x)).(*types.Named); !ok || n.Obj().Name() != "FiberOption" {
			return false
		}
		c, ok := ast.Unparen(x).(*ast.CallExpr)
		return !ok || nameOf(typeutil.StaticCallee(w.info, c)) == module+".WithGoroutine"
	})
}

// child inspects the function of a supervised child.
func (w *waiter) child(lit *ast.CompositeLit) {
	if !isNamed(w.info.TypeOf(lit), module+"/supervise", "Child") {
		return
	}
	for _, x := range lit.Elts {
		if kv, ok := x.(*ast.KeyValueExpr); ok {
			if k, ok := kv.Key.(*ast.Ident); ok && k.Name == "Run" {
				w.fiber(lit.Pos(), kv.Value)
			}
		}
	}
}

// fiber inspects a function that runs in a fiber: a literal, or a function of this package.
func (w *waiter) fiber(start token.Pos, fn ast.Expr) {
	w.start = start
	switch fn := ast.Unparen(fn).(type) {
	case *ast.FuncLit:
		w.body(fn.Body)
	case *ast.Ident, *ast.SelectorExpr:
		id, ok := fn.(*ast.Ident)
		if !ok {
			id = fn.(*ast.SelectorExpr).Sel
		}
		if f, ok := w.info.Uses[id].(*types.Func); ok {
			w.body(w.bodies[f.Origin()])
		}
	}
}

// body looks for waits in the body of a function, and in functions that it calls directly.
func (w *waiter) body(b *ast.BlockStmt) {
	if b == nil || w.visited[b] {
		return
	}
	w.visited[b] = true
	ast.Inspect(b, w.visit)
}

// visit is called for each node of a fiber's function. It reports whether to inspect the children of the node.
func (w *waiter) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncLit:
		return false // it runs elsewhere, unless it is called here
	case *ast.GoStmt:
		for _, x := range n.Call.Args {
			ast.Inspect(x, w.visit)
		}
		return false
	case *ast.CallExpr:
		w.call(n)
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			w.receive(n.OpPos, n.X)
		}
	case *ast.RangeStmt:
		if t := w.info.TypeOf(n.X); t != nil && isChan(t) {
			w.report(n.For, "the loop over a native channel", "a coir.Chan and All, or coir.FromChan")
		}
	case *ast.SendStmt:
		if v := w.variable(n.Chan); v != nil && w.makes[v] == unbuffered {
			w.report(n.Arrow, "the send on a native channel", "a coir.Chan")
		}
	case *ast.SelectStmt:
		w.selects(n)
		return false
	}
	return true
}

// call checks a call in a fiber.
func (w *waiter) call(n *ast.CallExpr) {
	if lit, ok := ast.Unparen(n.Fun).(*ast.FuncLit); ok {
		w.body(lit.Body)
		return
	}
	f := typeutil.StaticCallee(w.info, n)
	if f == nil {
		return
	}
	if instead, ok := blockers[nameOf(f)]; ok {
		w.report(n.Pos(), types.ExprString(n.Fun), instead)
	}
	w.body(w.bodies[f.Origin()])
}

// receive reports a receive.
func (w *waiter) receive(at token.Pos, from ast.Expr) {
	switch call, ok := ast.Unparen(from).(*ast.CallExpr); {
	case ok && nameOf(w.method(call)) == "context.Context.Done":
		w.report(at, "the wait for a context", "coir.WaitCancel(ctx)")
	case ok && nameOf(typeutil.StaticCallee(w.info, call)) == "time.After":
		w.report(at, "the wait for a time", "coir.Sleep(ctx, d)")
	default:
		w.report(at, "the receive from a native channel", "a coir.Chan, or coir.FromChan")
	}
}

// method returns the function or method that is called, including methods of interfaces.
func (w *waiter) method(call *ast.CallExpr) *types.Func {
	f, _ := typeutil.Callee(w.info, call).(*types.Func)
	return f
}

// selects checks a native select. A select with a default does not wait.
func (w *waiter) selects(n *ast.SelectStmt) {
	waits := true
	for _, c := range n.Body.List {
		c := c.(*ast.CommClause)
		waits = waits && c.Comm != nil
		for _, s := range c.Body {
			ast.Inspect(s, w.visit)
		}
	}
	if waits {
		w.report(n.Select, "the native select", "coir.Select")
	}
}

func (w *waiter) report(at token.Pos, what, instead string) {
	start := w.pass.Fset.Position(w.start)
	w.pass.Report(analysis.Diagnostic{
		Pos: at,
		Message: fmt.Sprintf("%s holds the worker of the fiber that is started at %s:%d: use %s, or call it in coir.Blocking",
			what, filepath.Base(start.Filename), start.Line, instead),
		Related: []analysis.RelatedInformation{{Pos: w.start, Message: "here the fiber is started"}},
	})
}
