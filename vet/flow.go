package vet

import (
	"go/token"
	"go/types"
	"maps"
	"slices"

	"golang.org/x/tools/go/ssa"
)

// A flow follows the buffers of one function. For each point it knows which buffers have ended on every path to that
// point, and reports only those. So a path that can never run, or an effect of another function, can hide a mistake but
// cannot cause a false report.
//
// A buffer is named by its root, the value from which it came: copies are the same SSA value, and the results of Slice
// and Fill have the root of their buffer. Each time its instruction runs, for instance in a loop, a value is new: from
// then on the facts about the old value are forgotten.
//
// Variables that a function literal uses, and those whose address is taken, are memory in SSA form, not values. Such a
// variable is called a cell. It is followed if only this function stores to it.

// fate says what is known about the end of a buffer.
type fate struct {
	by ssa.CallInstruction
	is certainty
}

type certainty uint8

const (
	gone      certainty = iota + 1 // the buffer has ended
	unchecked                      // it was sent by a call whose error is ignored
	sent                           // on this path the error of the call is nil
	perhaps                        // the error of the call decides
	kept                           // on this path the error of the call is not nil
)

// ended reports whether the buffer has ended.
func (f fate) ended() bool { return f.is == gone || f.is == unchecked || f.is == sent }

// join returns what is known where two paths meet, or false if nothing is known.
func (f fate) join(o fate) (fate, bool) {
	switch {
	case f == o:
		return f, true
	case f.by == o.by && f.is >= sent && o.is >= sent:
		return fate{f.by, perhaps}, true
	case f.ended() && o.ended():
		if o.by.Common().Pos() < f.by.Common().Pos() {
			f, o = o, f
		}
		if f.is == unchecked || o.is == unchecked {
			return fate{f.by, unchecked}, true
		}
		return fate{f.by, gone}, true
	}
	return fate{}, false
}

// facts are what is known at a point.
type facts struct {
	of map[ssa.Value]fate      // by root
	in map[ssa.Value]ssa.Value // the roots of the contents of cells
	as map[ssa.Value]ssa.Value // the roots of values loaded from cells
}

func newFacts() *facts {
	return &facts{make(map[ssa.Value]fate), make(map[ssa.Value]ssa.Value), make(map[ssa.Value]ssa.Value)}
}

func (k *facts) clone() *facts { return &facts{maps.Clone(k.of), maps.Clone(k.in), maps.Clone(k.as)} }

func (k *facts) equal(o *facts) bool {
	return maps.Equal(k.of, o.of) && maps.Equal(k.in, o.in) && maps.Equal(k.as, o.as)
}

// meet keeps the facts that hold on both paths.
func (k *facts) meet(o *facts) {
	for v, f := range k.of {
		if both, ok := f.join(o.of[v]); ok {
			k.of[v] = both
		} else {
			delete(k.of, v)
		}
	}
	same := func(m, o map[ssa.Value]ssa.Value) {
		maps.DeleteFunc(m, func(v, root ssa.Value) bool { return o[v] != root })
	}
	same(k.in, o.in)
	same(k.as, o.as)
}

// root returns the value from which the buffer v came.
func (k *facts) root(v ssa.Value) ssa.Value {
	for {
		from := sameBuffer(v)
		if from == nil {
			if root := k.as[v]; root != nil {
				return root
			}
			return v
		}
		v = from
	}
}

// sameBuffer returns the value of which v is a part or a copy, or nil.
func sameBuffer(v ssa.Value) ssa.Value {
	switch v := v.(type) {
	case *ssa.ChangeType:
		return v.X
	case *ssa.Call:
		if bufFunction(v.Common()) == "Buf.Slice" {
			return v.Call.Args[0]
		}
	case *ssa.Extract:
		if c, ok := v.Tuple.(*ssa.Call); ok && v.Index == 0 && bufFunction(c.Common()) == "Buf.Fill" {
			return c.Call.Args[0]
		}
	}
	return nil
}

// made forgets the facts about the last value of v.
func (k *facts) made(v ssa.Value) {
	delete(k.of, v)
	delete(k.as, v)
	is := func(_, root ssa.Value) bool { return root == v }
	maps.DeleteFunc(k.in, is)
	maps.DeleteFunc(k.as, is)
}

// end records the end of a buffer. The result of Append is its buffer, or another one to which the contents moved: if
// the result has ended, both have.
func (k *facts) end(v ssa.Value, f fate) {
	root := k.root(v)
	k.of[root] = f
	if x, ok := root.(*ssa.Extract); ok && x.Index == 0 {
		if c, ok := x.Tuple.(*ssa.Call); ok && bufFunction(c.Common()) == "Buf.Append" {
			k.end(c.Call.Args[0], f)
		}
	}
}

// again forgets which errors decide, because the call runs again and has another error.
func (k *facts) again(call ssa.CallInstruction) {
	for v, f := range k.of {
		switch {
		case f.by != call:
		case f.is == sent:
			k.of[v] = fate{call, gone}
		case f.is >= perhaps:
			delete(k.of, v)
		}
	}
}

type flow struct {
	fn      *ssa.Function
	reports *bufReports
	cells   map[ssa.Value]bool
	entry   *facts
	out     map[*ssa.BasicBlock]*facts
	defers  []*ssa.Defer // releases that run at each return, the last one first
	told    map[fate]bool
	telling bool
}

func newFlow(fn *ssa.Function, reports *bufReports) *flow {
	w := &flow{
		fn: fn, reports: reports, cells: make(map[ssa.Value]bool), entry: newFacts(),
		out: make(map[*ssa.BasicBlock]*facts), told: make(map[fate]bool),
	}
	for _, v := range fn.FreeVars {
		if reports.frozen[v] {
			w.cells[v] = true
			if f, ok := reports.stale[v]; ok {
				w.entry.in[v], w.entry.of[v] = v, f // the variable stands for the buffer
			}
		}
	}
	return w
}

// run follows all paths through the function until no facts change, and then reports.
func (w *flow) run() {
	if !w.prepare() {
		return
	}
	for rounds, changed := 0, true; changed; rounds++ {
		if rounds > 10+len(w.fn.Blocks) {
			return // few functions need more than three passes; report nothing that is not certain
		}
		changed = false
		for _, b := range w.fn.Blocks {
			known := w.before(b)
			if known == nil {
				continue
			}
			w.walk(b, known)
			if old := w.out[b]; old == nil || !old.equal(known) {
				w.out[b], changed = known, true
			}
		}
	}
	w.telling = true
	for _, b := range w.fn.DomPreorder() {
		if known := w.before(b); known != nil {
			w.walk(b, known)
		}
	}
}

// prepare finds the cells and the deferred releases. It reports whether there is a buffer to follow.
func (w *flow) prepare() (some bool) {
	for _, b := range w.fn.Blocks {
		for _, at := range b.Instrs {
			switch at := at.(type) {
			case *ssa.Alloc:
				if isBuf(at.Type().(*types.Pointer).Elem()) && onlyHere(at) {
					w.cells[at] = true
				}
			case *ssa.Defer:
				_, _, ok := operationOf(at.Common())
				some = some || ok
				if bufFunction(at.Common()) == "Buf.Release" && at.DeferStack == nil && !reaches(b, b) {
					w.defers = append([]*ssa.Defer{at}, w.defers...)
				}
			case ssa.CallInstruction:
				_, _, ok := operationOf(at.Common())
				some = some || ok
			case *ssa.MakeClosure:
				some = true
			}
		}
	}
	return some
}

// onlyHere reports whether only its own function stores to a variable, and whether its address is not kept.
func onlyHere(cell ssa.Value) bool {
	for _, at := range *cell.Referrers() {
		switch at := at.(type) {
		case *ssa.Store:
			if at.Val == cell {
				return false
			}
		case *ssa.UnOp, *ssa.DebugRef:
		case *ssa.Call:
			if bufFunction(at.Common()) != "Buf.Write" {
				return false
			}
		case *ssa.MakeClosure:
			if v := capturedBy(at, cell); v == nil || !onlyRead(v) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// onlyRead reports whether a function literal, and the literals in it, only load the variable.
func onlyRead(v *ssa.FreeVar) bool {
	for _, at := range *v.Referrers() {
		switch at := at.(type) {
		case *ssa.UnOp, *ssa.DebugRef:
		case *ssa.MakeClosure:
			if in := capturedBy(at, v); in == nil || !onlyRead(in) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// capturedBy returns the variable of a function literal that stands for v.
func capturedBy(at *ssa.MakeClosure, v ssa.Value) *ssa.FreeVar {
	if i := slices.Index(at.Bindings, v); i >= 0 {
		return at.Fn.(*ssa.Function).FreeVars[i]
	}
	return nil
}

// before returns the facts at the beginning of a block, or nil if the block has not been reached yet.
func (w *flow) before(b *ssa.BasicBlock) *facts {
	if b == w.fn.Blocks[0] {
		return w.entry.clone() // the block has no predecessors
	}
	var known *facts
	for i, p := range b.Preds {
		out := w.out[p]
		if out == nil {
			continue
		}
		k := w.edge(p, b, out)
		k.pass(b, i)
		if known == nil {
			known = k
		} else {
			known.meet(k)
		}
	}
	return known
}

// pass assigns to the phis of a block, which change at the same time, the facts about their values on the given edge.
func (k *facts) pass(b *ssa.BasicBlock, edge int) {
	fates := make(map[*ssa.Phi]fate)
	for _, at := range b.Instrs {
		phi, ok := at.(*ssa.Phi)
		if !ok {
			break
		}
		if isBuf(phi.Type()) {
			fates[phi] = k.of[k.root(phi.Edges[edge])]
		}
	}
	for phi := range fates {
		k.made(phi)
	}
	for phi, f := range fates {
		if f.is != 0 {
			k.of[phi] = f
		}
	}
}

// edge returns the facts on the edge from p to b. A branch on the error of a call decides whether the call has sent the
// buffer.
func (w *flow) edge(p, b *ssa.BasicBlock, out *facts) *facts {
	k := out.clone()
	call, nilTo := branchOn(p)
	if call == nil || p.Succs[0] == p.Succs[1] {
		return k
	}
	for v, f := range k.of {
		if f.by == call && f.is == perhaps {
			if b == nilTo {
				k.of[v] = fate{call, sent}
			} else {
				k.of[v] = fate{call, kept}
			}
		}
	}
	return k
}

// branchOn returns the call whose error is compared with nil at the end of a block, and the block that follows if it is
// nil.
func branchOn(p *ssa.BasicBlock) (call ssa.CallInstruction, nilTo *ssa.BasicBlock) {
	cond, ok := p.Instrs[len(p.Instrs)-1].(*ssa.If)
	if !ok {
		return nil, nil
	}
	cmp, ok := cond.Cond.(*ssa.BinOp)
	if !ok {
		return nil, nil
	}
	x, y := cmp.X, cmp.Y
	if isNil(x) {
		x, y = y, x
	}
	c, ok := x.(*ssa.Call)
	if !ok || !isNil(y) {
		return nil, nil
	}
	switch cmp.Op {
	case token.EQL:
		return c, p.Succs[0]
	case token.NEQ:
		return c, p.Succs[1]
	}
	return nil, nil
}

func isNil(v ssa.Value) bool {
	c, ok := v.(*ssa.Const)
	return ok && c.IsNil()
}

// walk walks through a block, and updates known to the facts at its end.
func (w *flow) walk(b *ssa.BasicBlock, known *facts) {
	for _, at := range b.Instrs {
		w.look(at, known)
		if _, ok := at.(*ssa.Phi); ok {
			continue // handled by before
		}
		if v, ok := at.(ssa.Value); ok {
			known.made(v)
		}
		switch at := at.(type) {
		case *ssa.Alloc:
			delete(known.in, at)
		case *ssa.Store:
			if w.cells[at.Addr] {
				known.in[at.Addr] = known.root(at.Val)
			}
		case *ssa.UnOp:
			w.load(at, known)
		case *ssa.Call:
			w.call(at, known)
		case *ssa.RunDefers:
			for _, d := range w.defers {
				if d.Block().Dominates(b) {
					w.check(d, d.Call.Args[0], at, known)
					known.end(d.Call.Args[0], fate{d, gone})
				}
			}
		case *ssa.MakeClosure:
			w.literal(at, known)
		}
	}
}

// load records the root of a loaded value. If the root is not known, the value itself becomes the root.
func (w *flow) load(at *ssa.UnOp, known *facts) {
	if at.Op != token.MUL || !w.cells[at.X] {
		return
	}
	if root := known.in[at.X]; root != nil {
		known.as[at] = root
	} else {
		known.in[at.X] = at
	}
}

// call records the effect of a call on its buffer.
func (w *flow) call(at *ssa.Call, known *facts) {
	op, method, ok := operationOf(at.Common())
	if !ok {
		return
	}
	known.again(at)
	b := at.Call.Args[op.arg]
	switch {
	case method == "Buf.Write":
		if w.cells[b] {
			known.in[b] = at // the result is the same buffer, or another one
		}
	case op.ends == "":
	case !op.asks:
		known.end(b, fate{at, gone})
	case len(*at.Referrers()) == 0:
		known.end(b, fate{at, unchecked})
	default:
		known.end(b, fate{at, perhaps})
	}
}

// look reports buffers that an instruction uses too late.
func (w *flow) look(at ssa.Instruction, known *facts) {
	if !w.telling {
		return
	}
	if call, ok := at.(ssa.CallInstruction); ok {
		if op, method, ok := operationOf(call.Common()); ok {
			b := call.Common().Args[op.arg]
			if method == "Buf.Write" {
				if b = known.in[b]; b == nil {
					return
				}
			}
			if w.check(call, b, at, known) {
				return
			}
			if c, ok := at.(*ssa.Call); ok && method == "Chan.SendCase" && ownedHere(known.root(b)) {
				w.reports.copied(c)
			}
		}
	}
	if !readsSlices(at) {
		return
	}
	for _, v := range at.Operands(nil) {
		if from := sliceOf(storedHere(*v)); from != nil {
			if f := known.of[known.root(from.Call.Args[0])]; w.certain(f, at) && !w.told[f] {
				w.told[f] = true
				w.reports.kept(at, from, f)
			}
		}
	}
}

// check reports a call that uses b at the instruction at, if b has ended by then. It reports each end once.
func (w *flow) check(call ssa.CallInstruction, b ssa.Value, at ssa.Instruction, known *facts) bool {
	f := known.of[known.root(b)]
	if !w.telling || !w.certain(f, at) {
		return false
	}
	if !w.told[f] {
		w.told[f] = true
		w.reports.used(call, f)
	}
	return true
}

// certain reports whether a use of a buffer with that fate is certainly a mistake.
func (w *flow) certain(f fate, at ssa.Instruction) bool {
	return f.ended() || f.is == perhaps && alsoIfSent(f.by.(*ssa.Call), at)
}

// readsSlices reports whether an instruction reads or writes the bytes of its operands, or passes them on.
func readsSlices(at ssa.Instruction) bool {
	switch at := at.(type) {
	case *ssa.IndexAddr, *ssa.Convert, *ssa.Range, *ssa.Send, *ssa.MakeInterface, *ssa.Return:
		return true
	case ssa.CallInstruction:
		f, ok := at.Common().Value.(*ssa.Builtin)
		return !ok || f.Name() != "len" && f.Name() != "cap"
	}
	return false
}

// storedHere returns the value last stored to the variable from which v is loaded, if that was in the same block, and
// otherwise v. It is needed for the results of functions with deferred calls.
func storedHere(v ssa.Value) ssa.Value {
	load, ok := v.(*ssa.UnOp)
	if !ok || load.Op != token.MUL {
		return v
	}
	if cell, ok := load.X.(*ssa.Alloc); ok && onlyHere(cell) {
		before := load.Block().Instrs[:slices.Index(load.Block().Instrs, ssa.Instruction(load))]
		for _, at := range slices.Backward(before) {
			if s, ok := at.(*ssa.Store); ok && s.Addr == cell {
				return s.Val
			}
		}
	}
	return v
}

// sliceOf returns the call of Bytes from which a slice comes, or nil.
func sliceOf(v ssa.Value) *ssa.Call {
	for {
		switch x := v.(type) {
		case *ssa.Slice:
			v = x.X
		case *ssa.Call:
			if bufFunction(x.Common()) == "Buf.Bytes" {
				return x
			}
			return nil
		default:
			return nil
		}
	}
}

// ownedHere reports whether the function itself made or received a buffer, or got it as the result of a call with such
// buffers. So it is not the buffer that HandOver passes to its function.
func ownedHere(v ssa.Value) bool {
	if from := sameBuffer(v); from != nil {
		return ownedHere(from)
	}
	if x, ok := v.(*ssa.Extract); ok {
		v = x.Tuple
	}
	c, ok := v.(*ssa.Call)
	if !ok {
		return false
	}
	if slices.Contains(sources, bufFunction(c.Common())) {
		return true
	}
	n := 0
	for _, a := range c.Call.Args {
		if isBuf(a.Type()) {
			if !ownedHere(a) {
				return false
			}
			n++
		}
	}
	return n > 0 && c.Call.StaticCallee() != nil
}

// literal records what is known about the variables of a function literal that are not stored to any more.
func (w *flow) literal(at *ssa.MakeClosure, known *facts) {
	if !w.telling {
		return
	}
	for i, cell := range at.Bindings {
		if !w.cells[cell] || storedAfter(cell, at) {
			continue
		}
		v := at.Fn.(*ssa.Function).FreeVars[i]
		w.reports.frozen[v] = true
		if f := known.of[known.in[cell]]; f.ended() {
			if f.is == sent {
				f.is = gone
			}
			w.reports.stale[v] = f
		}
	}
}

// storedAfter reports whether there is a path from an instruction to one that changes a cell.
func storedAfter(cell ssa.Value, at ssa.Instruction) bool {
	for _, s := range *cell.Referrers() {
		switch s.(type) {
		case *ssa.Store, *ssa.Call:
			if after(s, at) {
				return true
			}
		}
	}
	return false
}

// after reports whether there is a path from one instruction to another.
func after(to, from ssa.Instruction) bool {
	if from.Block() == to.Block() && slices.Index(from.Block().Instrs, from) < slices.Index(to.Block().Instrs, to) {
		return true
	}
	return reaches(from.Block(), to.Block())
}

// reaches reports whether there is a path of at least one step from a block to another.
func reaches(from, to *ssa.BasicBlock) bool {
	found, _ := explore(from, func(b *ssa.BasicBlock) bool { return b == to })
	return found
}

// explore follows all paths from a block, up to blocks that stop accepts. It reports whether it found such a block, and
// whether it found an end of the function.
func explore(from *ssa.BasicBlock, stop func(*ssa.BasicBlock) bool) (found, end bool) {
	seen := make(map[*ssa.BasicBlock]bool)
	for next := from.Succs; len(next) > 0; {
		b := next[len(next)-1]
		next = next[: len(next)-1 : len(next)-1]
		switch {
		case stop(b):
			found = true
		case !seen[b]:
			seen[b] = true
			end = end || len(b.Succs) == 0
			next = append(next, b.Succs...)
		}
	}
	return found, end
}

// alsoIfSent reports whether an instruction that uses a buffer runs after each call that has sent it. The meaning of
// the error is certain only if it is compared with nil to handle a failure, or if it is used later. In those cases an
// instruction that runs regardless of the error is a mistake. A test that expects a send to fail uses the error in
// other ways.
func alsoIfSent(call *ssa.Call, at ssa.Instruction) bool {
	from, to := call.Block(), at.Block()
	if from == to {
		if !dominates(call, at) {
			return false
		}
	} else if _, end := explore(from, func(b *ssa.BasicBlock) bool { return b == to }); end || len(from.Succs) == 0 {
		return false
	}
	var failed []*ssa.BasicBlock // where the paths begin on which the call has failed
	var others []ssa.Instruction
	for _, r := range *call.Referrers() {
		var branch *ssa.If
		if cmp, ok := r.(*ssa.BinOp); ok && len(*cmp.Referrers()) == 1 {
			branch, _ = (*cmp.Referrers())[0].(*ssa.If)
		}
		if branch == nil {
			others = append(others, r)
			continue
		}
		by, nilTo := branchOn(branch.Block())
		if by != call {
			others = append(others, r)
			continue
		}
		if dominates(at, r) {
			continue
		}
		not := branch.Block().Succs[0]
		if not == nilTo {
			not = branch.Block().Succs[1]
		}
		if len(nilTo.Preds) < 2 || len(not.Preds) != 1 {
			return false // something happens only if the buffer was sent
		}
		failed = append(failed, not)
	}
	return !slices.ContainsFunc(others, func(r ssa.Instruction) bool {
		return !dominates(at, r) && !loadedAfter(r, at) &&
			!slices.ContainsFunc(failed, func(b *ssa.BasicBlock) bool { return b.Dominates(r.Block()) })
	})
}

// loadedAfter reports whether an instruction only stores to a variable that is loaded after at. Such a variable is a
// result of a function with deferred calls.
func loadedAfter(r, at ssa.Instruction) bool {
	s, ok := r.(*ssa.Store)
	if !ok {
		return false
	}
	cell, ok := s.Addr.(*ssa.Alloc)
	return ok && !slices.ContainsFunc(*cell.Referrers(), func(r ssa.Instruction) bool {
		switch r := r.(type) {
		case *ssa.Store:
			return r.Addr != cell
		case *ssa.UnOp:
			return r.Block() != r.Parent().Recover && !dominates(at, r)
		}
		return true
	})
}

// dominates reports whether an instruction runs before another on every path.
func dominates(first, second ssa.Instruction) bool {
	if b := first.Block(); b == second.Block() {
		return slices.Index(b.Instrs, first) < slices.Index(b.Instrs, second)
	}
	return first.Block().Dominates(second.Block())
}
