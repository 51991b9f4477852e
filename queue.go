package coir

import (
	"context"
	"strconv"
	"sync/atomic"
	"unsafe"

	"github.com/coir-go/coir/internal/coro"
	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/wait"
	"github.com/coir-go/coir/internal/xatomic"
)

// Queue is a first-in, first-out queue of fibers and goroutines that wait to take something: a lock, a permit, a token.
// It is for packages that implement such types; package locks uses it. Other programs use those types, or a [Cond].
//
// The type that uses the Queue implements [Resource], which knows how much there is to take. The Queue makes callers
// wait, ends their waits on cancellation or deadline, serves them in order, provides cases for a select, reports the
// order of operations to the race detector, and lets package sim control and report each operation. What becomes free
// is reserved for the first waiter until there is enough for it: no later waiter overtakes it.
//
// The zero value is an empty queue without a name. A Queue must not be copied after first use.
type Queue struct {
	object
	mu      xatomic.Mutex // guards waiters, and calls of the Resource's methods
	waiters wait.Queue
	by      uintptr // the number of the fiber or goroutine that holds the object alone: see Held
	gaveUp  uint64  // waits that ended without the object, for snapshots; guarded by mu
}

// Resource is what a [Queue] hands out. Its methods must not wait, panic, or use the queue. Pass the same Resource to
// all methods of a Queue.
//
// The Queue calls Take and Put with its lock held, so these methods need no lock of their own. That lock is hidden from
// the race detector, because it would order all callers and so hide races between them. The detector therefore reports
// the accesses of Take and Put as races, unless both, and the functions that they call, are marked //go:norace. They
// cannot use maps, copy or append on shared memory, which the mark does not cover. A type that is built on a [Cond]
// needs no marks.
type Resource interface {
	// Take takes n if there is enough, and reports whether it did. The Queue calls it for the caller of an operation,
	// or for the first waiter. After Take has returned false, that caller may start to wait: a type with its own fast
	// path must record this, so that its next release calls Put. A select that only checks a case calls Take, and
	// immediately gives back what it took.
	Take(n int) bool
	// Put gives back n. If less than n has been taken, Put does nothing and returns false. waiting reports whether
	// there are waiters, which the Queue serves next.
	Put(n int, waiting bool) bool
	// Verb describes taking n. It is called without the lock, must always return the same result for the same n, and
	// needs no mark.
	Verb(n int) *Verb
}

// Verb describes an operation that waits, for reports, snapshots and the race detector. The method Verb of a [Resource]
// returns one. [Cond.Describe], [Promise.Describe] and [Chan.Describe] take one for types built on a Cond, a Promise or
// a Chan.
type Verb struct {
	Name  string // the operation: "lock"
	Waits string // what a fiber waits for, before the name of the object: "to lock"
	Ends  string // what a fiber does to the object to end waits: "unlock". Empty if something else ends them
	Of    string // what the object is: "mutex"

	// Alone means that the caller that takes holds the object alone, until it, or another caller on its behalf, gives
	// it back. Snapshots then show the holder: see [Queue.Held].
	Alone bool

	// Shared means that operations with shared verbs do not order each other, like the readers of a readers-writer
	// lock. Giving back by any verb is ordered before later taking by a verb that is not shared. Giving back by a verb
	// that is not shared is ordered before all later taking.
	Shared bool
}

// want describes what a waiter of a Queue waits for.
type want struct {
	n     int
	cases bool // a case of a select, which may have several cases

	q *Queue // q and r are set until the wait has ended
	r Resource
}

var wantKind = wait.KindOf[want]()

// forget clears the description: the cell of the wait lives long, and must not keep the object alive.
//
//go:norace
func (w *want) forget() { w.q, w.r = nil, nil }

//go:norace
func wantOf(x *wait.Node) *want { return &wait.CellOf[want](x).Value }

// Init sets the name of the queue, which reports show. Call it before the queue is first used.
func (q *Queue) Init(opts ...NameOption) { q.name = nameOf(opts) }

// Name returns the name passed to Init.
func (q *Queue) Name() string { return q.name }

// Fast reports whether an operation may use a fast path of the author's type instead of [Queue.TryTake] or [Queue.Put],
// because neither the race detector nor package sim needs to see the operation.
//
//go:norace
func (q *Queue) Fast() bool {
	return !race.Enabled && !xatomic.Instrumented && simulating.Load() == 0
}

// FastIn is like Fast, for an operation in ctx that would otherwise call [Queue.Take]. It returns false if ctx has
// ended. Like other operations that do not wait, it yields from time to time. by is the number of the calling fiber or
// goroutine, or 0 if it is not known; pass it to [Queue.Held].
//
//go:norace
func (q *Queue) FastIn(ctx context.Context) (by uint64, ok bool) {
	if !q.Fast() {
		return 0, false
	}
	f, sc := scopeOf(ctx)
	if sc == nil {
		if ctx.Done() != nil {
			return 0, false
		}
		return numberHere(), true
	}
	if f == nil || !f.task.Here() {
		by = numberHere() // a goroutine, or a fiber with the context of another
	} else {
		f.charge()
		by = f.id
	}
	return by, sc.state.Load() == scopeLive
}

// Held records, for snapshots, the only holder of the object: the number of a fiber or goroutine, as [Queue.FastIn]
// returns it, or 0 if there is none or the holder is unknown. The author's fast path calls Held after it has taken with
// [Queue.FastIn], and calls it with 0 before it gives back. A fast path without a context need not call it.
// [Queue.Take] and [Queue.Put] call it themselves for a [Verb] that is Alone.
//
//go:norace
func (q *Queue) Held(by uint64) {
	if uint64(uintptr(by)) != by {
		by = 0 // the number of a goroutine, which has no room on 32 bits
	}
	q.by = uintptr(by)
}

// holder returns the number that Held recorded.
//
//go:norace
func (q *Queue) holder() uint64 {
	race.Disable()
	defer race.Enable()
	return uint64(atomic.LoadUintptr(&q.by))
}

// lost returns the number of waits that ended without the object.
//
//go:norace
func (q *Queue) lost() uint64 {
	race.Disable()
	defer race.Enable()
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.gaveUp
}

// check panics for arguments that would otherwise cause a panic later, under the lock and with synchronisation hidden.
//
//go:norace
func (q *Queue) check(r Resource) {
	_ = q.name
	if r == nil {
		panic("coir: an operation of a Queue with a nil Resource: there is nothing to take or to put back")
	}
}

// Take takes n of r. It waits until there is enough, and until earlier waiters have been served. If ctx has ended, or
// ends first, it returns ctx's error and has taken nothing.
//
//go:norace
func (q *Queue) Take(ctx context.Context, r Resource, n int) error {
	q.check(r)
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
		// Task.Park, inlined by hand: see Task.BeginPark.
		if s := f.task.BeginPark(); s != nil {
			if s.Odd {
				s.Next()
			} else {
				s.Yield(struct{}{})
			}
			f.task.EndPark()
		}
		x := f.task.Kit().Solo(wantKind)
		if reason = f.task.Reason(); reason == park.Data {
			q.hold(f, r, n)
		} else {
			q.withdraw(x, r)
		}
		wantOf(x).forget()
	}
	race.Enable()
	if reason != park.Data {
		f.tellEnding(sc)
		return q.failed(sc.ending(), (*policy.Verb)(r.Verb(n)))
	}
	q.acquire(r, n)
	return nil
}

// begin takes n of r for f, or starts a wait of f under sc. It returns None if f must park.
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
		q.hold(f, r, n) // before another fiber runs
		f.charge()
		return park.Data
	}
	c := wait.SoloCell[want](f.task.Kit(), wantKind)
	c.Value = want{n: n, q: q, r: r}
	t := f.arm(sc, &c.Value)
	q.waiters.Push(&c.Node, &f.task.Parker, t)
	q.mu.Unlock()
	if f.shouldPark(sc) {
		return park.None
	}
	q.withdraw(&c.Node, r)
	return park.Cancelled
}

// takeAny implements Take for all other callers. If fibers used it too, the semaphore comparison in bench/ratios would
// take 1.25 times as long.
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

// await takes n of r for any caller, and waits if necessary.
//
//go:norace
func (q *Queue) await(by *caller, r Resource, n int) park.Reason {
	w := by.waiter()
	defer w.done()
	q.mu.Lock()
	if q.waiters.Empty() && r.Take(n) {
		q.mu.Unlock()
		q.holdHere(by.f, r, n)
		by.charge()
		return park.Data
	}
	c := wait.SoloCell[want](w.kit, wantKind)
	c.Value = want{n: n, q: q, r: r}
	t := by.arm(&w, &c.Value)
	q.waiters.Push(&c.Node, w.p, t)
	q.mu.Unlock()
	reason := by.await(&w, t, never)
	if reason == park.Data {
		q.holdHere(by.f, r, n)
	} else {
		q.withdraw(&c.Node, r)
	}
	c.Value.forget()
	return reason
}

// TryTake takes n of r if there is enough and no caller is waiting. It reports whether it did.
//
//go:norace
func (q *Queue) TryTake(r Resource, n int) bool {
	q.check(r)
	var by *Fiber
	if simulating.Load() > 0 {
		op := q.op(r, n)
		op.Try = true
		by = q.announce(currentFiber(), op)
	}
	race.Disable()
	took := q.try(r, n)
	if took {
		q.hold(by, r, n)
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

// Put gives back n of r, and then serves waiters as long as there is enough for the next one. It returns the result of
// r.Put.
//
//go:norace
func (q *Queue) Put(r Resource, n int) bool {
	q.check(r)
	var by *Fiber
	if simulating.Load() > 0 {
		op := q.op(r, n)
		op.Undo = true
		by = q.announce(currentFiber(), op)
	}
	if race.Enabled {
		race.Release(q.edge(r.Verb(n).Shared))
	}
	alone := r.Verb(n).Alone
	race.Disable()
	q.mu.Lock()
	if alone {
		q.Held(0)
	}
	ok := r.Put(n, !q.waiters.Empty())
	q.serve(r)
	if ok {
		q.hold(by, r, -n)
	}
	race.Enable()
	by.stepped()
	return ok
}

// serve serves the waiters at the head of the queue as long as there is enough for the next one. It unlocks the queue.
//
//go:norace
func (q *Queue) serve(r Resource) {
	var woken wait.Queue
	for q.serveFirst(r, &woken) {
	}
	q.mu.Unlock()
	if !woken.Empty() {
		readyAll(&woken)
	}
}

// claimAll ends all waits in q, and returns their number. It moves waiters that are asleep to woken.
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

// readyAll readies the waiters in woken, which were claimed while asleep. Until they are readied they stay asleep, and
// their nodes do not change.
//
//go:noinline
//go:norace
func readyAll(woken *wait.Queue) {
	here := currentWorker()
	for x := woken.Shift(); x != nil; x = woken.Shift() {
		p := x.Parker
		x.Parker = nil
		p.MakeReady(here)
	}
}

// serveFirst serves the first waiter, if there is one and there is enough for it. It reports whether to continue. It
// calls r.Take before it claims the wait, because a type with a fast path may take what is free at any time. If the
// waiter was cancelled in the meantime, serveFirst puts back what it took.
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

// otherCase serves another case of the select that x belongs to, and returns its node, or nil. All cases of a select
// share the place of the first of them, so that a select does not wait behind itself.
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

// claim removes x, a node of the parker p, from the queue, and ends its wait.
//
//go:norace
func (q *Queue) claim(x *wait.Node, p *park.Parker) (won bool, asleep *park.Parker) {
	q.waiters.Withdraw(x)
	x.Parker = p // Withdraw has cleared it
	return x.Claim(park.Data)
}

// withdraw removes a waiter that gives up. If it was the first, there may be enough for the next one, which withdraw
// serves.
//
//go:norace
func (q *Queue) withdraw(x *wait.Node, r Resource) {
	q.mu.Lock()
	n := q.waiters.Len()
	q.waiters.Withdraw(x)
	// Add nothing if the wait was served meanwhile.
	q.gaveUp += uint64(n - q.waiters.Len())
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

// hold records that f has taken n of r, or given back -n if n is negative, and tells the policy of f, if there is one.
//
//go:norace
func (q *Queue) hold(f *Fiber, r Resource, n int) {
	if n > 0 && f != nil && r.Verb(n).Alone {
		q.Held(f.id)
	}
	if f != nil && f.simulated {
		f.nursery.rt.policy.Holds(f, q.number(), n)
	}
}

// holdHere is hold for the calling fiber f, or the calling goroutine if f is nil.
//
//go:norace
func (q *Queue) holdHere(f *Fiber, r Resource, n int) {
	if f == nil && r.Verb(n).Alone {
		q.Held(goroutineNumber(coro.G()))
	}
	q.hold(f, r, n)
}

// edge returns the address that race.Release and race.Acquire use for shared verbs, or for all others.
//
//go:norace
func (q *Queue) edge(shared bool) unsafe.Pointer {
	if shared {
		return unsafe.Pointer(&q.waiters)
	}
	return unsafe.Pointer(&q.mu)
}

// op returns the Op that takes n of r.
//
//go:norace
func (q *Queue) op(r Resource, n int) policy.Op {
	op := q.object.op((*policy.Verb)(r.Verb(n)))
	op.Take, op.Again = n, true
	return op
}

// TakeCase returns a case that takes n of r.
func (q *Queue) TakeCase(r Resource, n int) Case {
	q.check(r)
	escapes(q)
	escapes(r)
	return Case{what: caseTake, arg: r, ptr: unsafe.Pointer(q), num: int64(n)}
}

// Len returns the number of waiters. The count may include a waiter that is about to give up.
//
//go:norace
func (q *Queue) Len() int {
	_ = q.name // panics here if the queue is nil, before synchronisation is hidden
	race.Disable()
	q.mu.Lock()
	n := q.waiters.Len()
	q.mu.Unlock()
	race.Enable()
	return n
}

// String returns a short description of the queue: its name, or its number if it has none, and how many waiters it has.
func (q *Queue) String() string { return q.title() + ", " + strconv.Itoa(q.Len()) + " waiting" }

// takeCase is the event of a Case that takes something.
type takeCase Case

//go:norace
func (c *takeCase) parts() (q *Queue, r Resource, n int) {
	return (*Queue)(c.ptr), c.arg.(Resource), int(c.num)
}

// happened reports whether there is enough. It takes n and gives it back, because only Take can tell.
//
//go:norace
func (c *takeCase) happened() bool {
	q, r, n := c.parts()
	q.mu.Lock()
	enough := q.waiters.Empty() && r.Take(n)
	if enough {
		r.Put(n, false)
	}
	q.mu.Unlock()
	return enough
}

// try performs the case if it need not wait.
//
//go:norace
func (c *takeCase) try() bool {
	q, r, n := c.parts()
	return q.try(r, n)
}

// publish starts the wait of a select. If there is enough, the select claims its own wait under the queue's lock,
// because another case may already have ended the wait.
//
//go:norace
func (c *takeCase) publish(x *wait.Node, p *park.Parker, t park.Ticket) bool {
	q, r, n := c.parts()
	*wantOf(x) = want{n: n, cases: true, q: q, r: r}
	q.mu.Lock()
	q.waiters.Push(x, p, t)
	if q.waiters.First().Parker == p && r.Take(n) { // p is first, perhaps through another case of the select
		if won, _ := q.claim(x, p); !won {
			r.Put(n, !q.waiters.Empty())
		}
	}
	q.mu.Unlock()
	return true
}

//go:norace
func (c *takeCase) withdraw(x *wait.Node) bool {
	q, r, _ := c.parts()
	q.withdraw(x, r)
	return x.Won
}

//go:norace
func (c *takeCase) op() policy.Op {
	q, r, n := c.parts()
	return q.op(r, n)
}

//go:norace
func (c *takeCase) result(*Case) {
	q, r, n := c.parts()
	q.acquire(r, n)
	if simulating.Load() > 0 || r.Verb(n).Alone {
		f := currentFiber()
		race.Disable()
		q.holdHere(f, r, n)
		race.Enable()
	}
}
