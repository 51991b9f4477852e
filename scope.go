package coir

import (
	"context"
	"unsafe"

	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/sched"
	"github.com/coir-go/coir/internal/stdctx"
	"github.com/coir-go/coir/internal/wait"
	"github.com/coir-go/coir/internal/xatomic"
)

// A scope is a context that can be cancelled. It belongs to a nursery, or was made by a function such as WithTimeout,
// WithCancel or Shield. Both a scope and a fiber can serve as a context.Context (scopeContext, fiberContext); the scope
// of a fiber's context is that of its nursery.
//
// How a cancellation finds the waiters without a lock on every wait:
//
// A fiber that waits under its own scope does not register each wait. It stores the scope in Fiber.waitScope, arms its
// word, and then checks whether the scope has been cancelled. A canceller marks the scope, and then checks the word of
// each fiber that may wait under it: the owner, and, if the scope is a nursery's, the children that have waited under
// it (see Nursery.list). Either the fiber sees the mark, or the canceller sees an armed word and wakes the fiber
// through the ordinary claim. promela/word.pml models this.
//
// An object that no caller waits for, such as an open ticket, has a Watch in a ring of the scope: see endwatch.go.
//
// Every other waiter, a goroutine or a fiber that was passed the context, adds a node of its own to the scope's list of
// guests, under the scope's lock. The canceller claims and readies the guests one by one.
//
// When a scope is cancelled, it cancels the scopes inside it, which it keeps in a list. A nursery's scope is added to
// that list when it is first used: see tie. bridge.go explains how contexts of package context cancel a scope, and how
// a scope cancels them.
type scope struct {
	up     context.Context // the context from which values and deadlines come
	rt     *Runtime
	owner  *Fiber // the fiber that may wait under the scope without registering; nil if a goroutine made the scope
	parent *scope // cancels this scope when it is cancelled

	rest  xatomic.Pointer[coldScope] // created on demand: see cold
	state xatomic.Uint32             // see the states below

	// These fields belong to the Nursery that begins with this scope, if there is one. They fill bytes that would
	// otherwise be padding.
	isNursery bool
	joined    bool   // used only by the owner: the owner has joined
	spawned   uint16 // used only by the owner: children that it started before it joined; see Nursery.pending
}

// coldScope is the state that a scope needs only once it is used or cancelled. A nursery in which no fiber waits or
// fails has none.
type coldScope struct {
	link *link // the link, of this scope or of one around it, to a context of package context; nil if there is none

	scopeMu xatomic.Mutex                   // guards unwoken, how, inner, guests and watches; for how see also tie
	unwoken bool                            // the scope is marked as cancelled, but its waiters have not been woken yet
	timed   bool                            // the scope is the first field of a timedScope
	sends   bool                            // the scope is the first field of a sendScope
	how     *ending                         // how the scope was cancelled; nil before that
	std     xatomic.Pointer[stdctx.Context] // made by the first call of Done
	inner   *scope                          // the scopes inside this one, linked by next
	guests  wait.Queue                      // waiters that neither own the scope nor are children of its nursery
	watches *Watch                          // a ring, in the order of Start; see endwatch.go

	// Under the parent's scopeMu.
	prev, next *scope
	linked     bool
}

// newScope returns a scope that belongs to no nursery, with its cold part.
func newScope() *scope {
	s := new(struct {
		scope
		cold coldScope
	})
	s.useCold(&s.cold)
	return &s.scope
}

// useCold gives a new scope its cold part.
//
//go:norace
func (sc *scope) useCold(c *coldScope) {
	race.Disable()
	sc.rest.Store(c)
	race.Enable()
}

// cold returns the cold part, and creates it if necessary.
//
//go:norace
func (sc *scope) cold() *coldScope {
	race.Disable()
	c := sc.rest.Load()
	race.Enable()
	if c == nil {
		c = sc.makeCold()
	}
	return c
}

//go:noinline
//go:norace
func (sc *scope) makeCold() *coldScope {
	race.Disable()
	defer race.Enable()
	c := new(coldScope)
	if sc.isNursery {
		c = &new(coldNursery).coldScope
	}
	if !sc.rest.CompareAndSwap(nil, c) {
		c = sc.rest.Load()
	}
	return c
}

// nursery returns the nursery whose scope this is, or nil.
//
//go:norace
func (sc *scope) nursery() *Nursery {
	if sc.isNursery {
		return (*Nursery)(unsafe.Pointer(sc))
	}
	return nil
}

var _ [unsafe.Offsetof(Nursery{}.scope)]struct{} = [0]struct{}{}

// The states of a scope. A nursery's scope stays loose until it is first used. All other scopes are tied or linked when
// they are created. These are all changes of the state, and what makes each of them safe:
//
//	from         to                          made by
//	loose        tying                       tie, under the parent's scopeMu, if there is a parent
//	tying        live, linked or cancelled   the same call of tie, still under the parent's scopeMu
//	loose        live                        tie, by a CAS, if there is no parent
//	loose        linked                      hangOn, by a store, because only the maker of the new scope knows it yet
//	loose        cancelled                   endLoose, by a CAS
//	live, linked cancelled                   mark, under the scope's own scopeMu
//
// The field how is set before the state becomes cancelled, except by endLoose, which leaves it nil.
const (
	scopeLoose     = iota // not in its parent's list yet; cancelled if its parent is cancelled
	scopeLive             // cancelled only directly or through an outer scope
	scopeLinked           // like scopeLive, and linked to a context of package context: see poll
	scopeTying            // a caller of tie, which holds the parent's scopeMu, decides the next state
	scopeCancelled        // final
)

// ending records how a scope was cancelled.
type ending struct {
	err   error // the result of Err: context.Canceled or context.DeadlineExceeded
	cause error // the result of context.Cause; nil means err
	op    error // the error of operations on objects without a name
}

var (
	plainCancel  = &ending{err: context.Canceled, op: context.Canceled}
	plainTimeout = &ending{err: context.DeadlineExceeded, op: ErrTimeout}
	// onPurpose is the ending of a nursery that was cancelled by Cancel(nil). Scopes inside it get plainCancel.
	onPurpose = &ending{err: context.Canceled, op: context.Canceled}
)

// canceledFor returns the ending of a scope that was cancelled with the given cause.
func canceledFor(cause error) *ending {
	if cause == nil || cause == context.Canceled {
		return plainCancel
	}
	return &ending{context.Canceled, cause, &canceledError{cause: cause}}
}

// expiredFor returns the ending of a scope whose time ran out. cause is the one passed to context.WithTimeoutCause, or
// nil.
func expiredFor(cause error) *ending {
	if cause == nil || cause == context.DeadlineExceeded {
		return plainTimeout
	}
	return &ending{context.DeadlineExceeded, cause, &timeoutError{cause: cause}}
}

// reason returns the reason to count for an operation that ended because of e.
//
//go:norace
func (e *ending) reason() park.Reason {
	if e.err == context.DeadlineExceeded {
		return park.TimedOut
	}
	return park.Cancelled
}

// init makes sc a scope inside ctx. parent is the coir scope that ctx is or was derived from, or nil.
//
//go:norace
func (sc *scope) init(ctx context.Context, rt *Runtime, parent *scope, owner *Fiber) {
	sc.rt, sc.up, sc.owner, sc.parent = rt, ctx, owner, parent
	switch {
	case parent != nil || ctx.Done() == nil:
		if !sc.isNursery {
			sc.tie()
		}
	default:
		if rt.policy != nil {
			rt.tellDeadline(ctx)
		}
		if e := endingOf(ctx); e != nil {
			sc.cancel(e, nil)
			return
		}
		sc.hangOn(ctx)
	}
}

// end removes the scope from its parent, and cancels the scope, because user code may have kept its context.
//
//go:norace
func (sc *scope) end() {
	if sc.endLoose() {
		return
	}
	sc.detach()
	sc.cancel(plainCancel, nil)
}

// endJoined is end for a nursery that has been joined. The owner calls it, and no child of the nursery waits any more.
// If nothing else uses its context, endJoined only marks the scope as cancelled.
//
//go:norace
func (sc *scope) endJoined() {
	if sc.endLoose() {
		return
	}
	sc.detach()
	c := sc.cold()
	race.Disable()
	c.scopeMu.Lock()
	watched := c.watches != nil
	quiet := !watched && c.inner == nil && c.guests.Empty() && c.std.Load() == nil
	if quiet && sc.mark(plainCancel) {
		c.unwoken = false
	}
	c.scopeMu.Unlock()
	race.Enable()
	if quiet {
		return
	}
	var by *Fiber
	if watched { // the operations of Ended may conflict with those of other steps
		by = sc.announceCancel()
	}
	sc.cancel(plainCancel, nil)
	by.stepped()
}

// tie adds a loose scope to its parent's list, or cancels it if the parent has been cancelled. Every check and every
// cancellation of a scope first ties it. A fiber checks its scope before it arms its word, so no fiber waits under a
// loose scope. A nursery whose scope is never checked never takes its parent's lock.
//
// A scope that is not tied is cancelled if its parent is, and each check of it also checks the parent. Once the scope
// is tied, a cancellation of the parent finds it, because both hold the parent's scopeMu. A second caller of tie sees
// scopeTying, and waits for that lock. tie is called while the caller's synchronisation is visible.
//
// Guarded by TestExploreTieAgainstCancel.
//
//go:noinline
//go:norace
func (sc *scope) tie() {
	race.Disable()
	s := sc.state.Load()
	race.Enable()
	if s != scopeLoose && s != scopeTying {
		return
	}
	c := sc.cold() // before the lock: it allocates
	p := sc.parent
	if p == nil {
		race.Disable()
		sc.state.CompareAndSwap(scopeLoose, scopeLive)
		race.Enable()
		return
	}
	p.tie()
	outer := p.cold()
	race.Disable()
	outer.scopeMu.Lock()
	if sc.state.CompareAndSwap(scopeLoose, scopeTying) {
		switch p.state.Load() {
		case scopeCancelled:
			race.Enable()
			c.how = p.ending().inside()
			race.Release(unsafe.Pointer(sc))
			race.Disable()
			sc.state.Store(scopeCancelled) // no wait or scope is under it, because each would have tied it
		case scopeLinked:
			c.link = outer.link
			p.add(sc)
			sc.state.Store(scopeLinked)
		default:
			p.add(sc)
			sc.state.Store(scopeLive)
		}
	}
	outer.scopeMu.Unlock()
	race.Enable()
}

// endLoose ends a loose scope. No wait or scope is inside a loose scope, and it is not in its parent's list, so
// endLoose only marks it. endLoose returns false if the scope is no longer loose. It also returns false if the parent
// may have been cancelled, because the scope's context, which the program may have kept, must then show how the parent
// ended.
//
//go:norace
func (sc *scope) endLoose() bool {
	if sc.state.Load() == scopeLoose && sc.parentLives() {
		race.Release(unsafe.Pointer(sc))
		race.Disable()
		ok := sc.state.CompareAndSwap(scopeLoose, scopeCancelled)
		race.Enable()
		if ok {
			return true
		}
	}
	sc.tie() // waits for a concurrent tie
	return false
}

// parentLives reports whether it is certain that no outer scope has been cancelled. It checks at most 32 levels. If all
// of those are loose, it returns false and leaves the decision to tie.
//
//go:norace
func (sc *scope) parentLives() bool {
	p := sc.parent
	for range 32 {
		if p == nil {
			return true
		}
		switch p.state.Load() {
		case scopeLive:
			return true
		case scopeLinked:
			return !p.cold().link.mayBeDone()
		case scopeLoose:
			p = p.parent
		default:
			return false
		}
	}
	return false
}

// detach removes the scope from its parent's list, and unlinks it from its context of package context, so that neither
// will cancel it.
//
//go:norace
func (sc *scope) detach() {
	if sc.parent != nil {
		sc.parent.drop(sc)
		if sc.state.Load() == scopeCancelled { // perhaps by the parent, which no longer finds the scope
			race.Disable()
			sc.wakeMarked(nil)
			race.Enable()
		}
	}
	if l := sc.cold().link; l != nil && l.sc == sc {
		l.detach()
	}
}

// cancel marks the scope and the scopes inside it as cancelled, and then wakes the waiters under them. Only the first
// call has an effect. It is called while the caller's synchronisation is visible.
//
//go:norace
func (sc *scope) cancel(e *ending, here *sched.Worker) {
	// Spec: NU-06 (cancel wakes every parked child)
	// Spec: NU-09 (cancel goes down the tree only)
	// Spec: NU-10 (the first cause of a cancel stays)
	sc.tie() // if the parent was cancelled first, its cause wins
	c := sc.cold()
	race.Disable()
	c.scopeMu.Lock()
	if !sc.mark(e) {
		c.scopeMu.Unlock()
		race.Enable()
		return
	}
	w := sc.takeWake()
	c.scopeMu.Unlock()
	sc.wake(w, here)
	race.Enable()
}

// mark marks the scopes inside the scope as cancelled, and then the scope itself. So if a scope is marked as cancelled,
// the scopes inside it are marked too. A second canceller waits for the lock, so this is also true when its call
// returns. After mark, a fiber that arms its word sees the mark, and no guest is added. mark returns false if the scope
// had already been cancelled. The caller holds the lock.
//
//go:norace
func (sc *scope) mark(e *ending) bool {
	if sc.state.Load() == scopeCancelled {
		return false
	}
	c := sc.cold()
	for child := c.inner; child != nil; child = child.cold().next {
		child.cold().scopeMu.Lock()
		child.mark(e.inside())
		child.cold().scopeMu.Unlock()
	}
	race.Enable()
	race.Release(unsafe.Pointer(sc)) // only here: a second cancellation orders nothing
	race.Disable()
	c.how, c.unwoken = e, true
	sc.state.Store(scopeCancelled)
	return true
}

// scopeWakes lists what must be woken in a scope that has been marked. No waiter can be added any more.
type scopeWakes struct {
	due     bool // the caller of takeWake must wake the waiters; true for only one caller
	guests  bool
	inner   bool
	watches bool
	std     *stdctx.Context
}

// takeWake returns what the caller must wake in a scope that has been marked. Its due is true only for the first
// caller. The caller holds the lock.
//
//go:norace
func (sc *scope) takeWake() scopeWakes {
	c := sc.cold()
	w := scopeWakes{c.unwoken, !c.guests.Empty(), c.inner != nil, c.watches != nil, c.std.Load()}
	c.unwoken = false
	return w
}

// wake wakes the waiters under a scope that has been marked, and under the scopes inside it.
//
//go:norace
func (sc *scope) wake(w scopeWakes, here *sched.Worker) {
	if !w.due {
		return
	}
	if w.std != nil { // first, because a waiter that has been woken may ask for the cause
		race.Enable()
		sc.checkCancel()
		race.Acquire(unsafe.Pointer(w.std))
		how := sc.cold().how
		w.std.End(how.err, how.cause) // a receive from Done is ordered after the cancellation
		race.Disable()
	}
	if sc.owner != nil {
		sc.owner.cancelWait(sc, here)
	}
	// If the nursery is closed, no child is left. If the value is stale, cancelWaits takes a lock for nothing.
	if n := sc.nursery(); n != nil && !n.closed() {
		n.cancelWaits(here)
	}
	if w.guests {
		sc.cancelGuests(here)
	}
	if w.watches {
		sc.endWatches()
	}
	for c := sc.cold(); w.inner; {
		c.scopeMu.Lock()
		child := c.inner
		if child != nil {
			sc.unlink(child) // whoever removes a scope from the list wakes its waiters
		}
		c.scopeMu.Unlock()
		if child == nil {
			return
		}
		child.wakeMarked(here)
	}
}

//go:norace
func (sc *scope) wakeMarked(here *sched.Worker) {
	c := sc.cold()
	c.scopeMu.Lock()
	w := sc.takeWake()
	c.scopeMu.Unlock()
	sc.wake(w, here)
}

// inside returns the ending of the scopes inside a scope that ended because of e.
//
//go:norace
func (e *ending) inside() *ending {
	if e == onPurpose {
		return plainCancel
	}
	return e
}

// addGuest registers a wait of a caller that does not belong to the scope. It returns false if the scope has been
// cancelled, because no later cancellation would then end the wait.
//
//go:norace
func (sc *scope) addGuest(n *wait.Node, p *park.Parker, t park.Ticket) bool {
	c := sc.cold()
	c.scopeMu.Lock()
	ok := sc.state.Load() != scopeCancelled
	if ok {
		c.guests.Push(n, p, t)
	}
	c.scopeMu.Unlock()
	return ok
}

// removeGuest removes a guest's node if it is still in the list.
//
//go:norace
func (sc *scope) removeGuest(n *wait.Node) {
	c := sc.cold()
	c.scopeMu.Lock()
	c.guests.Withdraw(n)
	c.scopeMu.Unlock()
}

// cancelGuests wakes the guests of a scope that has been cancelled.
//
//go:norace
func (sc *scope) cancelGuests(here *sched.Worker) {
	for c := sc.cold(); ; {
		c.scopeMu.Lock()
		n := c.guests.Shift()
		if n == nil {
			c.scopeMu.Unlock()
			return
		}
		_, asleep := n.Claim(park.Cancelled)
		c.scopeMu.Unlock()
		asleep.MakeReady(here)
	}
}

// done reports whether the scope has been cancelled. An operation calls it first, in a hidden section.
//
//go:norace
func (sc *scope) done() bool { return sc.state.Load() != scopeLive && sc.doneSlow() }

//go:noinline
//go:norace
func (sc *scope) doneSlow() bool {
	s := sc.state.Load()
	if s == scopeLoose || s == scopeTying {
		race.Enable()
		sc.tie()
		race.Disable()
		s = sc.state.Load()
	}
	return s == scopeCancelled || s == scopeLinked && sc.cold().link.mayBeDone() && sc.pollHidden()
}

// ends reports whether the scope has been cancelled, or done is about to cancel it. Unlike done, it calls no functions
// of the program that watch the end. An operation calls it in a hidden section.
//
//go:norace
func (sc *scope) ends() bool { return sc.state.Load() != scopeLive && sc.endsSlow() }

//go:noinline
//go:norace
func (sc *scope) endsSlow() bool {
	if s := sc.state.Load(); s == scopeLoose || s == scopeTying {
		race.Enable()
		sc.tie()
		race.Disable()
	}
	switch sc.state.Load() {
	case scopeCancelled:
		return true
	case scopeLinked:
		l := sc.cold().link
		return l.mayBeDone() && (stdctx.IsClosed(l.done) || l.behind != nil && l.behind.ends())
	}
	return false
}

// mayBeDone returns false only if the scope has certainly not been cancelled. If it returns true, call done.
//
//go:norace
func (sc *scope) mayBeDone() bool { return sc.state.Load() != scopeLive && sc.linkMayBeDone() }

//go:noinline
//go:norace
func (sc *scope) linkMayBeDone() bool {
	sc.tie()
	s := sc.state.Load()
	return s == scopeCancelled || s == scopeLinked && sc.cold().link.mayBeDone()
}

//go:noinline
//go:norace
func (sc *scope) pollHidden() bool {
	if l := sc.cold().link; l.behind == nil && !stdctx.IsClosed(l.done) {
		return false
	}
	race.Enable()
	ended := sc.poll() // poll may panic, and nothing must stay hidden then
	race.Disable()
	return ended
}

//go:norace
func (sc *scope) ctxErr() error {
	if sc.state.Load() == scopeLive || !sc.poll() {
		return nil
	}
	return sc.ending().err
}

// ending returns how the scope was cancelled. An operation that ended because of the cancellation calls it.
//
//go:norace
func (sc *scope) ending() *ending {
	race.Acquire(unsafe.Pointer(sc))
	race.Disable()
	c := sc.rest.Load()
	race.Enable()
	if c == nil || c.how == nil {
		return plainCancel // by Interrupt or endLoose
	}
	return c.how
}

// add adds child to the list of scopes inside sc. sc has not been cancelled. The caller holds scopeMu.
//
//go:norace
func (sc *scope) add(child *scope) {
	outer, c := sc.cold(), child.cold()
	c.linked, c.next = true, outer.inner
	if c.next != nil {
		c.next.cold().prev = child
	}
	outer.inner = child
}

//go:norace
func (sc *scope) drop(child *scope) {
	c := sc.cold()
	race.Disable()
	c.scopeMu.Lock()
	if child.cold().linked {
		sc.unlink(child)
	}
	c.scopeMu.Unlock()
	race.Enable()
}

// unlink removes child from the list of scopes inside sc. The caller holds scopeMu.
//
//go:norace
func (sc *scope) unlink(child *scope) {
	c := child.cold()
	if c.prev == nil {
		sc.cold().inner = c.next
	} else {
		c.prev.cold().next = c.next
	}
	if c.next != nil {
		c.next.cold().prev = c.prev
	}
	c.linked, c.prev, c.next = false, nil, nil
}
