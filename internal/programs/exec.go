package programs

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/coir-go/coir"
)

// Env is the environment of a program.
type Env struct {
	Now   func() time.Duration
	Failf func(format string, args ...any) // reports a fault
	Idle  bool                             // time passes only when nothing can run
	Run   runner
	Other *coir.Runtime // another runtime, unless the program is for a simulation
}

// runner is Run of some runtime.
type runner = func(context.Context, func(context.Context, *coir.Nursery) error) error

// run is a running function of the program: that of a fiber, of a nursery, or of a goroutine.
type run struct {
	w        *world
	name     string
	id       int
	own      *node
	nur      *nursery // the nursery of which it is the function, or a child
	reports  *nursery // the nursery of which its fiber is a child
	free     bool     // a goroutine that need not end before its nursery
	limited  bool     // its fiber has a place under a limit
	other    bool     // it runs on the other runtime
	native   bool     // it is a child with its own goroutine
	last     error
	lastNode *node
	lent     []int                     // values of the pool
	ends     [2]map[*channel]*endpoint // its own ones, by side
	seen     map[[2]int]int            // the last value received, by sender and channel
}

// Exec runs a program in ctx and checks it.
func Exec(ctx context.Context, p *Program, env Env) {
	w := &world{p: p, env: env}
	w.contexts = make([]*node, p.contexts)
	w.nurseries = make([]*nursery, p.groups)
	w.fibers = make([]*fiber, p.fibers)
	for i := range p.Chans {
		w.chans = append(w.chans, w.newChannel(i))
	}
	for i := range p.Queues {
		d := &p.Queues[i]
		q := &queue{d: d, name: fmt.Sprintf("queue%d", i)}
		opts := []coir.ChanOption{coir.WithName(d.Name)}
		if d.Handler != NoHandler {
			opts = append(opts, coir.OnUndelivered(func(r coir.Result[int]) { w.unreceived(q, r.Value) }))
		}
		q.o = coir.NewOrdered[int](d.Cap, opts...)
		w.queues = append(w.queues, q)
	}
	for i := range p.Pools {
		w.pools = append(w.pools, w.newPool(i))
	}
	base := &node{w: w, name: "the outermost context", ctx: ctx}
	w.harness(base)
	w.goroutines.Wait()
	w.settle(base)
}

// harness runs the program, and ends it when its time has passed.
func (w *world) harness(base *node) {
	r := &run{w: w, name: "harness", own: base}
	g := &Group{N: -1, Ctx: -1}
	_, _ = w.open(r, base, g, w.env.Run, func(r *run) error {
		p := w.p
		root := w.reaped(r.own)
		f := w.spawn(r, &FiberDecl{N: -1, Ctx: -1}, "root", func(r *run) error {
			_, _ = w.open(r, root, p.Root, coir.Run, func(r *run) error { return r.execute(p.Root.Body, p.Root.End) })
			return nil
		})
		if p.Reaper.How != ByTimeout && p.Reaper.How != ByStdDeadline {
			_, _ = coir.Select(r.own.ctx, f.f.DoneCase(nil), coir.After(p.Reaper.After))
			if top := at(w, w.nurseries, 0); p.Reaper.How == ByNursery && top != nil {
				top.cancel(w.cause(p.Reaper.Cause, nil))
			} else {
				w.cancel(root, w.cause(p.Reaper.Cause, nil))
			}
		}
		return nil
	})
}

// reaped makes the context of the program. The end of that context ends the program.
func (w *world) reaped(up *node) *node {
	kind := [...]ScopeKind{
		ByTimeout: WithTimeout, ByCancel: WithCancel, ByNursery: WithCancel, ByStdCancel: StdCancel,
		ByStdDeadline: StdTimeout,
	}[w.p.Reaper.How]
	n := w.derive("the program's context", kind, up, w.p.Reaper.After)
	n.bounded = true
	return n
}

// derive makes a context inside of up.
func (w *world) derive(name string, kind ScopeKind, up *node, d time.Duration) *node {
	n := &node{w: w, name: name, up: up, bounded: up.bounded, from: w.env.Now(), d: d}
	var cancel context.CancelFunc // of a context with a time limit
	if kind == StdFar && w.p.Sim {
		kind = StdCancel // sim reports a deadline of real time
	}
	switch kind {
	case WithCancel:
		n.ctx, n.stop = coir.WithCancelCause(up.ctx)
	case WithTimeout:
		n.ctx, cancel = coir.WithTimeout(up.ctx, d)
	case WithDeadline:
		n.ctx, cancel = coir.WithDeadline(up.ctx, time.Now().Add(d))
	case Shield:
		n.ctx, n.up, n.bounded = coir.Shield(up.ctx), nil, false
	case StdCancel:
		n.ctx, n.stop = context.WithCancelCause(up.ctx)
	case StdValue:
		n.ctx = context.WithValue(up.ctx, valueKey{}, n)
	case StdTimeout:
		n.expires = w.newError()
		n.ctx, cancel = context.WithTimeoutCause(up.ctx, d, n.expires)
	case StdFar:
		n.ctx, cancel = context.WithTimeout(up.ctx, Far)
		n.d = Far
	}
	if cancel != nil {
		n.stop, n.bare = func(error) { cancel() }, true
		n.timed = true
		n.bounded = n.bounded || kind != StdFar && (d < Long || w.p.Sim)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.made = append(w.made, n)
	return n
}

type valueKey struct{}

// cancel cancels a context of the program.
func (w *world) cancel(n *node, cause error) {
	if n.stop == nil {
		return
	}
	if n.bare {
		cause = nil
	}
	n.begin(cause)
	n.stop(cause)
	n.cancelled()
}

func (n *nursery) cancel(cause error) {
	w := n.w
	w.mu.Lock()
	if cause == nil {
		n.purpose++
	} else {
		n.reasons++
	}
	node := n.node
	w.mu.Unlock()
	node.begin(cause)
	n.n.Cancel(cause)
	node.cancelled()
}

func (w *world) cause(c Cause, last error) error {
	switch c {
	case CauseOwn:
		return w.newError()
	case CauseClosed:
		return coir.ErrClosed
	case CauseTimeout:
		return coir.ErrTimeout
	case CauseDeadline:
		return context.DeadlineExceeded
	case CauseCanceled:
		return context.Canceled
	case CauseWouldBlock:
		return coir.ErrWouldBlock
	case CauseLast:
		return last
	}
	return nil
}

// open calls Run, or a function like it, and checks its result. It returns the error, or the value of the panic.
func (w *world) open(by *run, up *node, g *Group, start runner, body func(*run) error) (v any, err error) {
	return w.openOn(by, up, g, false, start, body)
}

// openOn is open, perhaps on the other runtime.
func (w *world) openOn(by *run, up *node, g *Group, crosses bool, start runner,
	body func(*run) error) (v any, err error) {
	n := &nursery{w: w, g: g, name: fmt.Sprintf("n%d", g.N)}
	returned := false
	defer func() {
		if returned {
			return
		}
		v = recover()
		musts := w.checkRun(n, nil, v, v == nil)
		if v == nil { // Goexit, which continues in the calling fiber: that reports the failure
			w.mu.Lock()
			if up := by.reports; up != nil && (len(musts) > 0 || !n.onlyEchoes()) {
				up.musts = append(up.musts, musts...)
				up.exits++
				up.node.fails(coir.ErrGoexit)
			}
			w.mu.Unlock()
		}
	}()
	err = start(up.ctx, func(ctx context.Context, cn *coir.Nursery) error {
		if g.Limit > 0 {
			cn.Limit(g.Limit)
		}
		node := &node{w: w, name: fmt.Sprintf("ctx%d of %s", g.Ctx, n.name), ctx: ctx, up: up, bounded: up.bounded, nur: n}
		n.n, n.node, n.other = cn, node, by.other || crosses
		w.mu.Lock()
		if g.N >= 0 {
			w.contexts[g.Ctx], w.nurseries[g.N] = node, n
		}
		w.made = append(w.made, node)
		w.mu.Unlock()
		r := &run{w: w, name: n.name, id: -1 - g.N, own: node, nur: n, reports: by.reports, limited: by.limited,
			other: by.other}
		if crosses || by.native { // a fiber that is not a child of any nursery, so its failures are reported here
			r.reports, r.other = n, n.other
		}
		normal := false
		var err error
		defer func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			n.bodyEnded = true
			if normal && err != nil {
				n.fail(err, r)
			} else if !normal {
				node.fails(nil)
			}
		}()
		err = body(r)
		normal = true
		return err
	})
	returned = true
	w.checkRun(n, err, nil, false)
	return nil, err
}

// fail records that err was returned in the nursery. The lock is held.
func (n *nursery) fail(err error, r *run) {
	var from *node
	if err == r.last {
		from = r.lastNode
	}
	n.returned, n.froms = append(n.returned, err), append(n.froms, from)
	n.node.fails(err)
}

// spawn starts a fiber in the nursery of r.
func (w *world) spawn(r *run, d *FiberDecl, name string, body func(*run) error) *fiber {
	f := &fiber{name: name, nur: r.nur}
	w.mu.Lock()
	r.nur.live++
	w.mu.Unlock()
	f.f = r.nur.n.Go(name, func(ctx context.Context) (err error) {
		in := w.enter(ctx, f, d)
		normal := false
		defer func() { w.leave(f, in, normal, err, false) }()
		err = body(in)
		normal = true
		return err
	}, d.options()...)
	if d.N >= 0 {
		w.mu.Lock()
		w.fibers[d.N] = f
		w.mu.Unlock()
	}
	return f
}

// options returns the options to start the fiber with.
func (d *FiberDecl) options() []coir.FiberOption {
	if d.Own {
		return []coir.FiberOption{coir.WithGoroutine()}
	}
	return nil
}

// enter records that a fiber has begun.
func (w *world) enter(ctx context.Context, f *fiber, d *FiberDecl) *run {
	n := f.nur
	node := &node{w: w, name: fmt.Sprintf("ctx%d of %s", d.Ctx, f.name), ctx: ctx, up: n.node, bounded: n.node.bounded}
	w.mu.Lock()
	defer w.mu.Unlock()
	if d.Ctx >= 0 {
		w.contexts[d.Ctx] = node
	}
	w.made = append(w.made, node)
	n.running++
	if n.g.Limit > 0 && n.g.plain && n.running > n.g.Limit {
		w.failf("%s: %d fibers run under a limit of %d", n.name, n.running, n.g.Limit)
	}
	if n.closed {
		w.failf("%s begins although the Run of %s has returned", f.name, n.name)
	}
	return &run{w: w, name: f.name, id: d.N, own: node, nur: n, reports: n, limited: n.g.Limit > 0, other: n.other,
		native: d.Own && !w.p.Sim}
}

// leave records that a fiber has ended.
func (w *world) leave(f *fiber, r *run, normal bool, err error, quiet bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f.ended, f.err = true, err
	f.nur.live--
	f.nur.running--
	switch {
	case !normal:
		f.goexit = true // or a panic
		f.nur.node.fails(coir.ErrGoexit)
	case err != nil && !quiet:
		f.nur.fail(err, r)
	}
}

// execute performs the operations, and ends as the program prescribes.
func (r *run) execute(ops []*Op, end End) error {
	defer r.giveUp()
	r.all(ops)
	switch end.How {
	case ReturnNew:
		return r.w.newError()
	case ReturnLast:
		return r.last
	case ReturnWrapped:
		if r.last != nil {
			return &wrapped{r.last}
		}
	case ReturnPanic:
		return &coir.PanicError{Fiber: "nobody", Value: r.w.newError()}
	case ReturnErr:
		r.lastNode = r.own
		r.last = r.own.ctx.Err()
		return r.last
	case ReturnCause:
		return context.Cause(r.own.ctx)
	case Panic:
		r.panics(end.Panic)
	case Goexit:
		runtime.Goexit()
	case GoexitPanic:
		defer r.panics(PanicText)
		runtime.Goexit()
	}
	return nil
}

// panics records a panic, and then panics.
func (r *run) panics(k PanicKind) {
	m := must{panic: true}
	var v any
	switch k {
	case PanicText:
		v = fmt.Sprintf("panic of %s", r.name)
	case PanicError:
		v = r.w.newError()
	case PanicNilPanicError:
		v = (*coir.PanicError)(nil)
	case PanicOwnPanicError:
		pe := &coir.PanicError{Fiber: "nobody", Value: fmt.Sprintf("panic of %s, made by hand", r.name)}
		m.value, m.fiber = pe.Value, pe.Fiber
		r.expect(m)
		panic(pe)
	case PanicRuntime:
		m.value = anyRuntimeError{}
		r.expect(m)
		var none []int
		_ = none[r.id+100]
	}
	m.value = v
	if r.nur != nil && r.own.nur == nil { // a nursery's function runs in a fiber that may have another name
		m.fiber = r.name
	}
	r.expect(m)
	panic(v)
}

func (r *run) expect(m must) {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	r.nur.musts = append(r.nur.musts, m)
	r.nur.node.fails(nil)
}

// giveUp releases the resources that the function holds, no matter how it ends.
func (r *run) giveUp() {
	for len(r.lent) > 0 {
		r.giveBack(&Op{Kind: PoolPut})
	}
	for i, c := range r.w.chans { // in order
		if i%2 == 0 {
			for _, own := range r.ends {
				if x := own[c]; x != nil {
					r.closeEnd(c, x)
				}
			}
		}
	}
}

func (r *run) all(ops []*Op) {
	for _, op := range ops {
		if !r.w.p.Off[op.N] {
			r.do(op)
		}
	}
}

// pick returns the context of an operation. An operation that may wait forever needs a context that ends.
func (r *run) pick(op *Op, limit time.Duration) *node {
	if op.Ctx == Own {
		return r.own
	}
	w := r.w
	n := at(w, w.contexts, op.Ctx)
	if n == nil || !n.bounded && (limit < 0 || limit >= Long && !w.p.Sim) {
		return r.own
	}
	return n
}

// guarded calls f, which may call a handler that panics.
func guarded(f func()) (panicked bool) {
	defer func() {
		if v := recover(); v != nil {
			if err, ok := v.(error); !ok || !errors.Is(err, errHandler) {
				panic(v)
			}
			panicked = true
		}
	}()
	f()
	return false
}

func (r *run) do(op *Op) {
	w := r.w
	switch op.Kind {
	case Send, SendTimeout, TrySend:
		r.send(op)
	case SendMany:
		r.sendMany(op)
	case Recv, RecvTimeout, TryRecv:
		r.recv(op)
	case RecvMany:
		r.recvMany(op)
	case RecvAll:
		r.recvAll(op)
	case Close, Abort:
		r.close(op, w.chans[op.Obj])
	case CloseWriter:
		c := w.chans[op.Obj]
		r.closeEnd(c, r.endpoint(c, sending))
	case CloseReader:
		c := w.chans[op.Obj]
		r.closeEnd(c, r.endpoint(c, receiving))
	case Select, SelectPriority, TrySelect:
		r.choose(op)
	case Selector:
		r.selector(op)
	case Scope:
		r.scope(op)
	case Cancel:
		if n := at(w, w.contexts, op.Obj); n != nil {
			r.cancel(op, n)
		}
	case CancelNursery:
		if n := at(w, w.nurseries, op.Obj); n != nil {
			n.cancel(w.cause(op.Cause, r.last))
		}
	case Go:
		d := op.Fiber
		w.spawn(r, d, fmt.Sprintf("f%d", d.N), func(r *run) error { return r.execute(d.Ops, d.End) })
	case Run:
		r.nested(op)
	case Wait:
		r.wait(op)
	case QueueGo:
		r.queueGo(op)
	case QueueRecv:
		r.queueRecv(op)
	case QueueClose, QueueAbort:
		r.queueClose(op)
	case PoolGet, PoolTryGet:
		r.lend(op)
	case PoolPut, PoolDiscard:
		if len(r.lent) > 0 {
			r.giveBack(op)
		}
	case PoolClose:
		r.poolClose(op)
	case Sleep:
		n := r.pick(op, op.D)
		k := r.call(op, n)
		k.loose = true
		k.begin()
		err := coir.Sleep(n.ctx, op.D)
		if now := w.env.Now(); err == nil && now-k.from < op.D && w.p.Sim {
			k.failf("slept for %v", now-k.from)
		}
		k.end(err)
		if w.env.Idle && err == nil {
			k.slept()
		}
	case Yield:
		n := r.pick(op, 0)
		k := r.call(op, n).begin()
		k.end(coir.Yield(n.ctx))
	case Blocking:
		v, err := coir.Blocking(r.pick(op, 0).ctx, func() (*Op, error) {
			if !w.p.Sim {
				time.Sleep(op.D)
			}
			return op, errBlocking
		})
		if v != op || err != errBlocking {
			w.failf("%s: Blocking returned %v and %v, not what its function did", r.name, v, err)
		}
	case Goroutine:
		in := &run{w: w, name: r.name + "'s goroutine", id: 1000 + op.N, own: r.own, nur: r.nur, free: true}
		w.goroutines.Go(func() {
			defer in.giveUp()
			in.all(op.Ops)
		})
	}
}

// errBlocking is the error of the function of a Blocking.
var errBlocking = errors.New("the function's error")

// slept checks that a complete sleep did not outlast its context.
func (k *call) slept() {
	if at, ok := k.node.endedBy(); ok && max(at, k.from) < k.from+k.op.D {
		k.failf("slept for %v, and its context was over at %v", k.op.D, at)
	}
}

// cancel cancels a context. A scope inside it that is in use must see that immediately.
func (r *run) cancel(op *Op, n *node) {
	in, stop := coir.WithCancel(n.ctx)
	defer stop()
	room := coir.NewChan[int](2)
	_ = room.Send(in, 1)
	r.w.cancel(n, r.w.cause(op.Cause, r.last))
	k := r.call(op, n).begin()
	_, err := coir.Select(in, room.SendCase(2))
	k.end(err)
}

func (r *run) scope(op *Op) {
	w := r.w
	n := w.derive(fmt.Sprintf("ctx%d", op.Obj), op.Scope, r.pick(op, 0), op.D)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.contexts[op.Obj] = n
}

// nested opens an inner nursery.
func (r *run) nested(op *Op) {
	w := r.w
	up := r.pick(op, 0)
	if !up.bounded {
		up = w.derive(up.name+" with a timeout", WithTimeout, up, 50*time.Microsecond)
	}
	open := coir.Run
	limited := r.limited
	crosses := op.Other && w.env.Other != nil && !r.other
	if crosses {
		open = w.env.Other.Run
		r.limited = false
	}
	v, err := w.openOn(r, up, op.Group, crosses, open, func(r *run) error {
		return r.execute(op.Group.Body, op.Group.End)
	})
	r.limited = limited
	if v == nil {
		if err != nil {
			r.last, r.lastNode = err, nil
		}
		return
	}
	if op.N%2 == 0 { // recovered
		return
	}
	w.mu.Lock()
	for _, x := range tree(v.(*coir.PanicError)) {
		if pe, ok := x.(*coir.PanicError); ok && pe != nil {
			r.nur.musts = append(r.nur.musts, must{panic: true, value: pe.Value})
		} else if _, ok := x.(*ownError); ok {
			r.nur.musts = append(r.nur.musts, must{err: x})
		}
	}
	r.nur.node.fails(nil)
	w.mu.Unlock()
	panic(v)
}

func (r *run) wait(op *Op) {
	w := r.w
	f := at(w, w.fibers, op.Obj)
	if f == nil || f.f == nil {
		return
	}
	n := r.pick(op, -1)
	k := r.call(op, n).begin()
	err := f.f.Wait(n.ctx)
	if f.f == coir.Self(r.own.ctx) && !r.free {
		if err == nil {
			k.failf("a fiber has waited for itself")
		}
		return
	}
	if !k.must && r.fibers(k, f, err) { // otherwise it is the context's error, even if the fiber's error is the same
		return
	}
	k.end(err)
}

// fibers reports whether err is the error with which the fiber ended.
func (r *run) fibers(k *call, f *fiber, err error) bool {
	r.w.mu.Lock()
	ended, was, odd := f.ended, f.err, f.goexit
	r.w.mu.Unlock()
	switch {
	case err == nil:
		if !ended || was != nil || odd {
			k.failf("returned nil, and the fiber has ended: %v, with %v; by Goexit or panic: %v", ended, was, odd)
		}
		return false
	case ended && err == was:
	case ended && odd && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded):
	case ended && odd:
		if !endedOddly(err) {
			return false
		}
	default:
		return false
	}
	r.last, r.lastNode = err, nil
	return true
}

// endedOddly reports whether err is the error of a function that has panicked or called Goexit.
func endedOddly(err error) bool {
	return slices.ContainsFunc(tree(err), func(x error) bool {
		pe, ok := x.(*coir.PanicError)
		return x == coir.ErrGoexit || ok && pe != nil
	})
}
