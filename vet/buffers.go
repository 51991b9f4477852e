package vet

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/buildssa"
	"golang.org/x/tools/go/ssa"
)

// Buffers finds buffers of package buf that are used after they were given away.
//
// It walks through each function in SSA form. For each point it records the buffers that have no owner there on any
// path: see flow. The error of a send decides whether the sender still has the buffer, so the analysis follows branches
// on that error.
var Buffers = &analysis.Analyzer{
	Name: "coirbuf",
	Doc: `find buffers of package buf that are used after they were released or sent

After Release, after a Send that returned nil, and after a HandOver that returned nil, each use of the buf.Buf and of
its copies panics, and a slice that its Bytes returned belongs to another owner. coirbuf reports

	b.Release()
	b.Release() // twice

	defer b.Release() // also if it was sent
	return out.Send(ctx, b)

	if err := out.Send(ctx, b); err != nil {
		log.Print(err)
	}
	b.Release() // also if it was sent: move it into the if

	_ = out.Send(ctx, b) // the error is ignored, so b may belong to the receiver
	b.Bytes()

	defer b.Release()
	return b.Bytes() // the caller gets the bytes of the next owner

	coir.Select(ctx, out.SendCase(b)) // outside of HandOver this copies b

It follows a buffer within one function, and into function literals that are made after its end. A buffer that is given
away on some paths to a use only is not reported, and neither is one that another function gives away.`,
	URL:      "https://pkg.go.dev/" + module + "/vet",
	Requires: []*analysis.Analyzer{buildssa.Analyzer},
	Run:      runBuffers,
}

// operation describes what a function of package buf does to a buffer that is one of its arguments.
type operation struct {
	arg  int    // its index in a call in SSA form, where the receiver is argument 0
	ends string // how it ends the ownership, or ""
	asks bool   // the call may fail, and then the caller still has the buffer
}

// operations are the functions that panic if their buffer has been given away.
var operations = map[string]operation{
	"Buf.Append":       {},
	"Buf.Bytes":        {},
	"Buf.Clone":        {},
	"Buf.Fill":         {},
	"Buf.Release":      {ends: "released"},
	"Buf.Share":        {},
	"Buf.Slice":        {},
	"Buf.Write":        {},
	"Buf.WriteTo":      {},
	"Chan.Send":        {arg: 2, ends: "sent", asks: true},
	"Chan.SendCase":    {arg: 1},
	"Chan.SendTimeout": {arg: 2, ends: "sent", asks: true},
	"Chan.TrySend":     {arg: 1, ends: "sent", asks: true},
	"HandOver":         {ends: "handed over", asks: true},
}

// sources are the functions of package buf that return a buffer with a new owner.
var sources = []string{
	"Buf.Clone", "Buf.Share", "Chan.Recv", "Chan.RecvTimeout", "Chan.TryRecv",
	"Pool.Get", "Pool.GetTimeout", "Pool.TryGet",
}

func runBuffers(pass *analysis.Pass) (any, error) {
	if !slices.ContainsFunc(pass.Pkg.Imports(), func(p *types.Package) bool { return pathOf(p) == bufPath }) {
		return nil, nil
	}
	code := pass.ResultOf[buildssa.Analyzer].(*buildssa.SSA)
	r := &bufReports{pass: pass, stale: make(map[*ssa.FreeVar]fate), frozen: make(map[*ssa.FreeVar]bool)}
	funcs := code.SrcFuncs
	if init := code.Pkg.Func("init"); init != nil { // contains the literals in variables of the package
		funcs = append(slices.Clone(funcs), withLiterals(init)...)
	}
	for _, fn := range funcs { // each function before the literals in it
		newFlow(fn, r).run()
	}
	return nil, nil
}

// withLiterals returns a function and the function literals in it.
func withLiterals(fn *ssa.Function) []*ssa.Function {
	all := []*ssa.Function{fn}
	for _, f := range fn.AnonFuncs {
		all = append(all, withLiterals(f)...)
	}
	return all
}

// bufReports writes the reports of a package, and keeps what is known in a function about the variables of its
// literals.
type bufReports struct {
	pass   *analysis.Pass
	calls  map[token.Pos]*ast.CallExpr // by position of the opening parenthesis
	frozen map[*ssa.FreeVar]bool       // variables of a literal that do not change after it was made
	stale  map[*ssa.FreeVar]fate       // those of them whose buffer has ended by then
}

// used reports a use of a buffer after its end.
func (r *bufReports) used(at ssa.Instruction, f fate) {
	name, what := "the buffer", "use of "
	pos := at.Pos()
	if call, ok := at.(ssa.CallInstruction); ok {
		if op, method, ok := operationOf(call.Common()); ok {
			name, pos = r.name(call.Common(), op, method)
			what = lastWord(method) + " of "
			if _, ok := at.(*ssa.Defer); ok {
				what = "deferred " + what
			}
		}
	}
	r.report(pos, what+name+", which "+r.story(f), f)
}

// kept reports that a slice of a buffer is used after the buffer's end.
func (r *bufReports) kept(at ssa.Instruction, from *ssa.Call, f fate) {
	name, pos := r.name(from.Common(), operation{}, "Buf.Bytes")
	all := at.Block().Instrs
	for _, at := range all[slices.Index(all, at):] { // a conversion has no position, but a later use of it has
		if at.Pos().IsValid() {
			pos = at.Pos()
			break
		}
	}
	r.report(pos, "use of a slice that Bytes of "+name+" returned: the buffer "+r.story(f), f)
}

// copied reports that a case of a select would copy a buffer.
func (r *bufReports) copied(call *ssa.Call) {
	name, pos := r.name(call.Common(), operations["Chan.SendCase"], "Chan.SendCase")
	r.pass.Reportf(pos, "SendCase of %s outside of HandOver: it would have two owners; "+
		"call buf.HandOver with a function that does the select", name)
}

// story describes how a buffer ended.
func (r *bufReports) story(f fate) string {
	op, method, _ := operationOf(f.by.Common())
	at := fmt.Sprintf(" at line %d", r.pass.Fset.Position(f.by.Common().Pos()).Line)
	if _, ok := f.by.(*ssa.Defer); ok {
		return "is released before by the deferred Release" + at
	}
	switch f.is {
	case unchecked:
		return "may have been " + op.ends + at + ", where the error of " + lastWord(method) + " is ignored"
	case perhaps:
		return "was " + op.ends + at + " if " + lastWord(method) + " returned nil; otherwise the sender still has it"
	default:
		return "was " + op.ends + at
	}
}

func (r *bufReports) report(pos token.Pos, text string, f fate) {
	r.pass.Report(analysis.Diagnostic{
		Pos: pos, Message: text,
		Related: []analysis.RelatedInformation{{Pos: f.by.Common().Pos(), Message: "here its ownership ends"}},
	})
}

// name returns the source text that names the buffer of a call, and its position.
func (r *bufReports) name(call *ssa.CallCommon, op operation, method string) (string, token.Pos) {
	if r.calls == nil {
		r.calls = make(map[token.Pos]*ast.CallExpr)
		for _, f := range r.pass.Files {
			ast.Inspect(f, func(n ast.Node) bool {
				if c, ok := n.(*ast.CallExpr); ok {
					r.calls[c.Lparen] = c
				}
				return true
			})
		}
	}
	c := r.calls[call.Pos()]
	if c == nil {
		return "the buffer", call.Pos()
	}
	var e ast.Expr
	fun, isMethod := ast.Unparen(c.Fun).(*ast.SelectorExpr)
	switch {
	case op.arg == 0 && method != "HandOver":
		if !isMethod {
			return "the buffer", c.Pos()
		}
		e = fun.X
	case op.arg == 0:
		e = c.Args[0]
	default:
		e = c.Args[op.arg-1]
	}
	switch ast.Unparen(e).(type) {
	case *ast.Ident, *ast.SelectorExpr:
		return types.ExprString(e), c.Pos()
	}
	return "the buffer", c.Pos()
}

// operationOf returns the operation of a call on a buffer, and the name of the function without its package.
func operationOf(call *ssa.CallCommon) (op operation, method string, ok bool) {
	method = bufFunction(call)
	op, ok = operations[method]
	return op, method, ok && op.arg < len(call.Args)
}

// bufFunction returns the name of the function of package buf that is called, such as Buf.Bytes, or "" for other calls.
func bufFunction(call *ssa.CallCommon) string {
	fn := call.StaticCallee()
	if fn == nil {
		return ""
	}
	f, ok := fn.Object().(*types.Func)
	if !ok || f.Pkg() == nil || pathOf(f.Pkg()) != bufPath {
		return ""
	}
	return nameOf(f)[len(bufPath)+1:]
}

// lastWord returns the name of a method without its type.
func lastWord(method string) string {
	for i := len(method); i > 0; i-- {
		if method[i-1] == '.' {
			return method[i:]
		}
	}
	return method
}

// isBuf reports whether t is buf.Buf.
func isBuf(t types.Type) bool { return isNamed(t, bufPath, "Buf") }
