package coir

import (
	"context"
	"strconv"
	"time"
	"unsafe"

	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/wait"
	"github.com/coir-go/coir/internal/xatomic"
)

// Queue is a first-in, first-out queue of fibers and goroutines that wait to take something: a lock, a permit, a token.
// It is for authors of such types; package locks is written with it. Programs use those types, or a [Cond].
//
// The author's type says what there is to take, as a [Resource]. The Queue does the rest: it queues those that must
// wait, ends their waits by cancel or deadline, serves them in order, stands in a select, tells the race detector what
// is ordered before what, and lets package sim control and report each operation. What becomes free goes to the first
// waiter, if there is enough for it, and never to a later one.
//
// The zero value is an empty queue without a name. A Queue must not be copied after first use.
type Queue struct {
	object
	mu      xatomic.Mutex // guards waiters, and calls of the Resource's methods
	waiters wait.Queue
}

// Resource is what a [Queue] gives out. Its methods are called with the queue's lock held, one at a time, and in race
// builds with synchronisation hidden from the race detector: they must be marked go:norace. They must not wait, panic,
// or use the queue. The same Resource is passed to all methods of a Queue.
type Resource interface {
	// Take takes n, if there is enough now. It reports whether it did. It is called for the caller of an operation, or
	// for the first waiter. If Take reports false, its caller may be about to wait: a type with a fast path of its own
	// must note that, so that Put is called next time. A select that only looks takes, and puts back immediately.
	Take(n int) bool
	// Put gives n back. It reports false, and does nothing, if less than n has been taken. waiting tells whether there
	// are waiters, which are served next.
	Put(n int, waiting bool) bool
	// Verb says what taking n is. It is called without the lock, and always returns the same for the same n.
	Verb(n int) *Verb
}

// Verb is what taking something is called in a report, and what it means to the race detector.
type Verb struct {
	Name  string // the operation: "lock"
	Waits string // what a fiber waits for, before the name of the object: "to lock"
	Ends  string // the operation that gives it back, and so ends waits: "unlock"

	// Shared says that those that take it by a shared verb are not ordered among each other, as the readers of a
	// readers-writer lock are not. What gives back by any verb is ordered before what then takes by one that is not
	// shared, and the other way round.
	Shared bool
}

// want is what a waiter of a Queue waits for.
type want struct {
	n     int
	cases bool // it is a case of a select, which may have more of them
}

var wantKind = wait.KindOf[want]()

//go:norace
func wantOf(x *wait.Node) *want { return &wait.CellOf[want](x).Value }

// Init gives the queue the name that [WithName] says. Reports show it. It is called before first use.
func (q *Queue) Init(opts ...NameOption) { q.name = nameOf(opts) }

// Name returns the name that Init was given.
func (q *Queue) Name() string { return q.name }

// Fast reports whether an operation may succeed by a fast path of its author's, in place of [Queue.TryTake] or
// [Queue.Put]: neither the race detector nor package sim has to see it.
//
//go:norace
func (q *Queue) Fast() bool {
	return !race.Enabled && !xatomic.Instrumented && simulating.Load() == 0
}

// FastIn is Fast for an operation in ctx, in place of [Queue.Take]. It reports false if ctx has ended. As an operation
// that does not wait, it lets other fibers run now and then.
//
//go:norace
func (q *Queue) FastIn(ctx context.Context) bool {
	if !q.Fast() {
		return false
	}
	f, sc := scopeOf(ctx)
	if sc == nil {
		return ctx.Done() == nil
	}
	if f != nil && f.task.Here() {
		f.charge()
	}
	return sc.state.Load() == scopeLive
}

// Take takes n of r. It waits until there is enough, and until earlier waiters have been served. It returns ctx's error
// if ctx has ended, or ends first; then nothing has been taken.
//
//go:norace
func (q *Queue) Take(ctx context.Context, r Resource, n int) error {
	f, sc := ownFiber(ctx)
	if f == nil {
		return q.takeAny(ctx, r, n)
	}
	if f.simulated {
		q.announce(f, q.op(r, n))
	}
	race.Disable()
	reason := q.begin(f, sc, r, n)
	if reason == park.None {
		// This is Task.Park: see Task.BeginPark.
		if s := f.task.BeginPark(); s != nil {
			if s.Odd {
				s.Next()
			} else {
				s.Yield(struct{}{})
			}
			f.task.EndPark()
		}
		if reason = f.task.Reason(); reason == park.Data {
			q.hold(f, n)
		} else {
			q.withdraw(f.task.Kit().Solo(wantKind), r)
		}
	}
	race.Enable()
	if reason != park.Data {
		f.tellEnding(sc)
		return q.failed(sc.ending(), (*policy.Verb)(r.Verb(n)))
	}
	q.acquire(r, n)
	return nil
}

// begin takes n of r for f, or begins a wait of f under sc. It returns None if f must park.
//
//go:noinline
//go:norace
func (q *Queue) begin(f *Fiber, sc *scope, r Resource, n int) park.Reason {
	if sc.done() {
		return park.Cancelled
	}
	q.mu.Lock()
	if q.waiters.Empty() && r.Take(n) {
		q.mu.Unlock()
		q.hold(f, n) // before another fiber runs
		f.charge()
		return park.Data
	}
	t := f.arm(sc)
	c := wait.Peek[want](f.task.Kit(), wantKind)
	c.Value = want{n: n}
	q.waiters.Push(&c.Node, &f.task.Parker, t)
	q.mu.Unlock()
	if f.shouldPark(sc) {
		return park.None
	}
	q.withdraw(&c.Node, r)
	return park.Cancelled
}

// takeAny is Take for all other callers.
//
//go:noinline
//go:norace
func (q *Queue) takeAny(ctx context.Context, r Resource, n int) error {
	by := resolve(ctx)
	if simulating.Load() > 0 {
		q.announce(by.f, q.op(r, n))
	}
	if e := by.refused(); e != nil {
		return q.failed(e, (*policy.Verb)(r.Verb(n)))
	}
	race.Disable()
	reason := q.await(&by, r, n)
	race.Enable()
	if reason != park.Data {
		return q.failed(by.cancelled(), (*policy.Verb)(r.Verb(n)))
	}
	q.acquire(r, n)
	return nil
}

// await takes n of r, for any caller, or waits for it.
//
//go:norace
func (q *Queue) await(by *caller, r Resource, n int) park.Reason {
	w := by.waiter()
	defer w.done()
	q.mu.Lock()
	if q.waiters.Empty() && r.Take(n) {
		q.mu.Unlock()
		q.hold(by.f, n)
		by.charge()
		return park.Data
	}
	t := by.arm(&w)
	c := wait.Peek[want](w.kit, wantKind)
	c.Value = want{n: n}
	q.waiters.Push(&c.Node, w.p, t)
	q.mu.Unlock()
	reason := by.await(&w, t, never)
	if reason == park.Data {
		q.hold(by.f, n)
	} else {
		q.withdraw(&c.Node, r)
	}
	return reason
}

// TryTake takes n of r if there is enough now and no one waits. It reports whether it did.
//
//go:norace
func (q *Queue) TryTake(r Resource, n int) bool {
	var by *Fiber
	if simulating.Load() > 0 {
		op := q.op(r, n)
		op.Try = true
		by = q.announce(currentFiber(), op)
	}
	race.Disable()
	took := q.try(r, n)
	if took {
		q.hold(by, n)
	}
	race.Enable()
	if took {
		q.acquire(r, n)
	}
	if by != nil {
		by.tellTried(took)
		by.stepped()
	}
	return took
}

//go:norace
func (q *Queue) try(r Resource, n int) bool {
	q.mu.Lock()
	took := q.waiters.Empty() && r.Take(n)
	q.mu.Unlock()
	return took
}

// Put gives back n of r, and serves the waiters for which there is enough then. It reports what r.Put does.
//
//go:norace
func (q *Queue) Put(r Resource, n int) bool {
	var by *Fiber
	if simulating.Load() > 0 {
		op := q.op(r, n)
		op.Undo = true
		by = q.announce(currentFiber(), op)
	}
	if race.Enabled {
		race.Release(q.edge(r.Verb(n).Shared))
	}
	race.Disable()
	q.mu.Lock()
	ok := r.Put(n, !q.waiters.Empty())
	q.serve(r)
	if ok {
		q.hold(by, -n)
	}
	race.Enable()
	if by != nil {
		by.stepped()
	}
	return ok
}

// serve gives the waiters at the head of the queue what they wait for, as long as there is enough. It unlocks the
// queue.
//
//go:norace
func (q *Queue) serve(r Resource) {
	var woken wait.Queue
	for q.serveFirst(r, &woken) {
	}
	q.mu.Unlock()
	if !woken.Empty() {
		rouseAll(&woken)
	}
}

// claimAll ends all waits of q, and returns their number. It adds those that sleep to woken.
//
//go:norace
func claimAll(q, woken *wait.Queue) (n int) {
	for x := q.Shift(); x != nil; x = q.Shift() {
		won, asleep := x.Claim(park.Data)
		if won {
			n++
		}
		if asleep != nil {
			woken.Push(x, asleep, 0)
		}
	}
	return n
}

// rouseAll readies waiters that have been claimed asleep. They keep still until then, and so do their nodes.
//
//go:noinline
//go:norace
func rouseAll(woken *wait.Queue) {
	near := currentWorker()
	for x := woken.Shift(); x != nil; x = woken.Shift() {
		p := x.Parker
		x.Parker = nil
		p.Rouse(near)
	}
}

// serveFirst serves the first waiter, if there is one and there is enough. It reports whether to go on. r.Take comes
// before the claim, because a type with a fast path may take what is there at any time. If the waiter has been
// cancelled meanwhile, what was taken for it goes back.
//
//go:norace
func (q *Queue) serveFirst(r Resource, woken *wait.Queue) bool {
	x := q.waiters.First()
	if x == nil {
		return false
	}
	if !r.Take(wantOf(x).n) {
		if x = q.otherCase(r, x); x == nil {
			return false
		}
	}
	n := wantOf(x).n
	switch won, asleep := q.claim(x, x.Parker); {
	case !won:
		r.Put(n, true)
	case asleep != nil:
		woken.Push(x, asleep, 0)
	}
	return true
}

// otherCase takes what another case of the same select as x waits for, and returns its node, or nil. All cases of a
// select have come when the first of them has: it does not wait behind itself.
//
//go:norace
func (q *Queue) otherCase(r Resource, x *wait.Node) *wait.Node {
	if !wantOf(x).cases {
		return nil
	}
	for y := x.Next(); y != nil; y = y.Next() {
		if y.Parker == x.Parker && r.Take(wantOf(y).n) {
			return y
		}
	}
	return nil
}

// claim takes x, a node of the parker p, out of the queue, and ends its wait.
//
//go:norace
func (q *Queue) claim(x *wait.Node, p *park.Parker) (won bool, asleep *park.Parker) {
	q.waiters.Withdraw(x)
	x.Parker = p // which Withdraw forgets
	return x.Claim(park.Data)
}

// withdraw ends the wait of a waiter that leaves with nothing. If it was the first, there may be enough for those
// behind it.
//
//go:norace
func (q *Queue) withdraw(x *wait.Node, r Resource) {
	q.mu.Lock()
	q.waiters.Withdraw(x)
	q.serve(r)
}

// acquire tells the race detector that n of r has been taken.
//
//go:norace
func (q *Queue) acquire(r Resource, n int) {
	if race.Enabled {
		race.Acquire(q.edge(false))
		if !r.Verb(n).Shared {
			race.Acquire(q.edge(true))
		}
	}
}

// hold tells the policy of f, if it has one, that f has taken n, or given -n back.
//
//go:norace
func (q *Queue) hold(f *Fiber, n int) {
	if f != nil && f.simulated {
		f.nursery.rt.policy.Holds(f, q.number(), n)
	}
}

// edge is where the race detector keeps what is ordered before those that take: by what gave back under a shared verb,
// or by the others.
//
//go:norace
func (q *Queue) edge(shared bool) unsafe.Pointer {
	if shared {
		return unsafe.Pointer(&q.waiters)
	}
	return unsafe.Pointer(&q.mu)
}

// op is taking n of r, as a policy sees it.
//
//go:norace
func (q *Queue) op(r Resource, n int) policy.Op {
	op := q.object.op((*policy.Verb)(r.Verb(n)))
	op.Take, op.Again = n, true
	return op
}

// TakeCase is a case that takes n of r.
func (q *Queue) TakeCase(r Resource, n int) Case {
	escapes(q)
	escapes(r)
	return Case{what: caseTake, arg: r, dst: unsafe.Pointer(q), after: time.Duration(n)}
}

// Len returns the number of waiters. It may count one that is about to leave.
//
//go:norace
func (q *Queue) Len() int {
	race.Disable()
	q.mu.Lock()
	n := q.waiters.Len()
	q.mu.Unlock()
	race.Enable()
	return n
}

// String describes the queue in a few words: its name, or its number if it has none, and how many wait.
func (q *Queue) String() string { return q.title() + ", " + strconv.Itoa(q.Len()) + " waiting" }

// takeCase is a case that takes something, as an event of a select.
type takeCase Case

//go:norace
func (cs *takeCase) parts() (q *Queue, r Resource, n int) {
	return (*Queue)(cs.dst), cs.arg.(Resource), int(cs.after)
}

// happened reports whether there is enough now. It takes and gives back: only that is certain.
//
//go:norace
func (cs *takeCase) happened() bool {
	q, r, n := cs.parts()
	q.mu.Lock()
	enough := q.waiters.Empty() && r.Take(n)
	if enough {
		r.Put(n, false)
	}
	q.mu.Unlock()
	return enough
}

// try takes what the case is for, if that needs no wait.
//
//go:norace
func (cs *takeCase) try() bool {
	q, r, n := cs.parts()
	return q.try(r, n)
}

// publish begins the wait of a select. If there is enough now the select claims itself, under the queue's lock: another
// case may have ended the wait already.
//
//go:norace
func (cs *takeCase) publish(x *wait.Node, p *park.Parker, t park.Ticket) bool {
	q, r, n := cs.parts()
	*wantOf(x) = want{n, true}
	q.mu.Lock()
	q.waiters.Push(x, p, t)
	if q.waiters.First().Parker == p && r.Take(n) { // p is first, perhaps by another case
		if won, _ := q.claim(x, p); !won {
			r.Put(n, !q.waiters.Empty())
		}
	}
	q.mu.Unlock()
	return true
}

//go:norace
func (cs *takeCase) withdraw(x *wait.Node) bool {
	q, r, _ := cs.parts()
	q.withdraw(x, r)
	return x.Won
}

//go:norace
func (cs *takeCase) op() policy.Op {
	q, r, n := cs.parts()
	return q.op(r, n)
}

//go:norace
func (cs *takeCase) result(*Case) {
	q, r, n := cs.parts()
	q.acquire(r, n)
	if simulating.Load() > 0 {
		f := currentFiber()
		race.Disable()
		q.hold(f, n)
		race.Enable()
	}
}
