package coir

import (
	"context"
	"iter"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/coir-go/coir/internal/flavor"
	"github.com/coir-go/coir/internal/invariant"
	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/wait"
	"github.com/coir-go/coir/internal/xatomic"
)

// Chan passes values of type T between fibers and goroutines, in any mix. Any number may send and receive at once.
//
// Its capacity makes the kind: with 0 a send returns once a receiver has taken the value; with n values wait in a buffer;
// see also [Unlimited] and [Conflated]. What a send does when the buffer is full is set by [Overflow].
//
// Values of one sender are received in the order in which they were sent. Whoever waits is served in the order of arrival, and
// is never overtaken by an operation that came later. On every error the value stays the sender's, and nothing has been
// received.
//
// A channel need not be closed to be collected.
//
// # How it works
//
// One lock guards everything: the store, the queue of senders that wait, the queue of receivers that wait. An operation tries to
// complete under it; if it cannot, it publishes a cell there, lets go of the lock and parks. Whoever completes it writes or
// reads the cell's value under the lock, and claims the wait through the parker's word: one of data, close, cancel and
// timeout wins. Invariants, under the lock and but for waits that have ended and are about to be removed:
//
//	no-idle-sender    If the store has room, no sender waits.
//	no-idle-receiver  If the store has a value, no receiver waits.
//	one-side          Senders and receivers do not wait at the same time, but for the two sides of one select.
//	closed-no-wait    Once Close has returned no receiver waits; once Abort has, nobody.
type Chan[T any] struct {
	core
	store       flavor.Store[T]
	undelivered func(T)
}

// core is the part of a channel that does not depend on the type of its values.
type core struct {
	mu        xatomic.Mutex
	senders   wait.Queue
	receivers wait.Queue
	state     chanState
	over      OverflowPolicy
	kind      wait.Kind
	held      int       // values in the store
	limit     int       // how many it may hold
	watch     *watchers // selectors that want to know when it becomes ready; nil if none ever did

	sent, received uint64
	high           int
	dropped        uint64
	failed         [2]failures

	rt    *Runtime   // the runtime with a policy on which it was made, or nil
	times *chanTimes // nil unless Timed
	id    uint64
	name  string
	cause error // given to Abort; written before state
	errs  xatomic.Pointer[[2]sideErrors]
}

type chanState uint8

const (
	open    chanState = iota
	closed            // takes nothing more, and delivers what it has
	aborted           // delivers nothing more
)

// sideErrors are the errors of one side of a channel that has a name, or a cause. They are made when they are first needed and
// kept, so that an operation that fails again and again allocates nothing.
type sideErrors struct {
	closed     closedError
	wouldBlock wouldBlockError
	timeout    timeoutError
}

// failures counts operations of one side that did not complete, by reason.
type failures struct{ wouldBlock, timedOut, cancelled, closed uint64 }

// The two sides, as indexes.
const (
	sending = iota
	receiving
)

var lastChan atomic.Uint64

// NewChan makes a channel. The capacity is 0, the number of values that it may hold, [Unlimited] or [Conflated].
//
//go:noinline
func NewChan[T any](capacity int, opts ...ChanOption) *Chan[T] {
	// Spec: CH-54 (channel ids order their locks)
	set := settingsOf(opts)
	c := new(Chan[T])
	c.store, c.over = kindOf[T](capacity, set.over)
	c.kind = wait.KindOf[T]()
	c.undelivered = handler[T](set)
	c.limit = capOf(capacity)
	c.name = set.name
	race.Disable() // to make a channel orders nobody
	c.id = lastChan.Add(1)
	race.Enable()
	c.rt = simulatedBy()
	if set.timed {
		c.times = &chanTimes{clock: clockHere()}
	}
	return c
}

// Send gives v to the channel. It waits while there is neither a receiver nor room, unless the channel's [Overflow] says
// otherwise. It returns an error that is [ErrClosed] if the channel is closed, and ctx's if ctx is over.
//
//go:norace
func (c *Chan[T]) Send(ctx context.Context, v T) error {
	// Spec: CH-03 (a rendezvous send returns when the value is taken)
	// Spec: CH-29 (a send is admitted if it sees the channel open)
	// Spec: CH-30 (a send that is not admitted transfers nothing)
	// Spec: CH-31 (an admitted send transfers or waits)
	// Spec: CH-41 (a send on a closed channel is an error)
	f, sc := ownFiber(ctx)
	if f == nil {
		return c.sendSlow(ctx, v, forever)
	}
	if f.simulated {
		f.step(c.op(policy.Send))
	}
	if race.Enabled {
		c.exists()
	}
	race.Disable()
	r := c.beginSend(f, sc, v, forever)
	if r == park.None {
		// What Park does, without a frame of its own: see Task.Leave.
		if s := f.task.Leave(); s != nil {
			if s.Odd {
				s.Next()
			} else {
				s.Yield(struct{}{})
			}
			f.task.Arrive()
		}
		r = f.task.Reason()
		c.endSend(f, sc, r, false)
	}
	race.Enable()
	if r == park.Data {
		return nil
	}
	return c.opErr(sending, r, sc)
}

// SendTimeout is Send that waits for d at most: then it returns [ErrTimeout].
//
//go:norace
func (c *Chan[T]) SendTimeout(ctx context.Context, v T, d time.Duration) error {
	// Spec: CH-23 (a deadline ends a wait with ErrTimeout)
	// Spec: CH-27 (a timed wait never polls)
	d = max(d, 0)
	f, sc := ownFiber(ctx)
	if f == nil {
		return c.sendSlow(ctx, v, d)
	}
	if f.simulated {
		f.step(c.op(policy.Send))
	}
	if race.Enabled {
		c.exists()
	}
	race.Disable()
	r := c.beginSend(f, sc, v, d)
	if r == park.None {
		r = f.task.Park()
		c.endSend(f, sc, r, true)
	}
	race.Enable()
	if r == park.Data {
		return nil
	}
	return c.opErr(sending, r, sc)
}

// exists panics if the channel is nil. In a race build operations ask before they hide their synchronisation: a panic
// inside the hidden part would leave it hidden. In other builds the first look at the channel panics.
//
//go:norace
func (c *core) exists() { _ = c.state }

// beginSend sends v if that needs no wait; otherwise it has f wait under sc, published, and returns None.
//
//go:noinline
//go:norace
func (c *Chan[T]) beginSend(f *Fiber, sc *scope, v T, d time.Duration) park.Reason {
	if sc.done() {
		c.countFailed(sending, sc.failureReason(park.Cancelled))
		return park.Cancelled
	}
	c.mu.Lock()
	r, asleep := c.put(v)
	if r == park.Data {
		c.mu.Unlock()
		f.went(asleep)
		return r
	}
	if r == park.None && c.over != Wait {
		r = c.overrun(v)
		f.spend()
		return r
	}
	if r == park.None && d != 0 {
		cell := wait.Peek[T](f.task.Kit(), c.kind)
		t := f.arm(sc)
		asleep = c.publishSend(cell, v, &f.task.Parker, t)
		c.mu.Unlock()
		f.rouse(asleep)
		if d > 0 {
			f.armTimer(t, d)
		}
		if f.parks(sc) {
			return park.None
		}
		c.endSend(f, sc, park.Cancelled, d > 0)
		return park.Cancelled
	}
	return c.passed(f, sending, r, asleep)
}

// endSend cleans up after a wait of beginSend.
//
//go:noinline
//go:norace
func (c *Chan[T]) endSend(f *Fiber, sc *scope, r park.Reason, timed bool) {
	if timed && r != park.TimedOut {
		f.stopTimer()
	}
	k := f.task.Kit()
	c.leave(wait.Peek[T](k, c.kind), sending, sc.failureReason(r))
	wait.Done[T](k, c.kind)
}

// Recv takes the next value. It waits while there is none. It returns an error that is [ErrClosed] if the channel is closed and
// has nothing left, and ctx's if ctx is over.
//
//go:norace
func (c *Chan[T]) Recv(ctx context.Context) (T, error) {
	// Spec: CH-32 (how a receive is admitted)
	// Spec: CH-33 (a receive on a drained closed channel fails at once)
	// Spec: CH-42 (closed and count are one state)
	f, sc := ownFiber(ctx)
	if f == nil {
		return c.recvSlow(ctx, forever)
	}
	if f.simulated {
		f.step(c.op(policy.Recv))
	}
	if race.Enabled {
		c.exists()
	}
	race.Disable()
	v, r := c.beginRecv(f, sc, forever)
	if r == park.None {
		// What Park does: see Task.Leave.
		if s := f.task.Leave(); s != nil {
			if s.Odd {
				s.Next()
			} else {
				s.Yield(struct{}{})
			}
			f.task.Arrive()
		}
		r = f.task.Reason()
		v = c.endRecv(f, sc, r, false)
	}
	race.Enable()
	if r == park.Data {
		return v, nil
	}
	return v, c.opErr(receiving, r, sc)
}

// RecvTimeout is Recv that waits for d at most: then it returns [ErrTimeout].
//
//go:norace
func (c *Chan[T]) RecvTimeout(ctx context.Context, d time.Duration) (T, error) {
	// Spec: CH-23 (a deadline ends a wait with ErrTimeout)
	// Spec: CH-27 (a timed wait never polls)
	d = max(d, 0)
	f, sc := ownFiber(ctx)
	if f == nil {
		return c.recvSlow(ctx, d)
	}
	if f.simulated {
		f.step(c.op(policy.Recv))
	}
	if race.Enabled {
		c.exists()
	}
	race.Disable()
	v, r := c.beginRecv(f, sc, d)
	if r == park.None {
		r = f.task.Park()
		v = c.endRecv(f, sc, r, true)
	}
	race.Enable()
	if r == park.Data {
		return v, nil
	}
	return v, c.opErr(receiving, r, sc)
}

//go:noinline
//go:norace
func (c *Chan[T]) beginRecv(f *Fiber, sc *scope, d time.Duration) (v T, r park.Reason) {
	if sc.done() {
		c.countFailed(receiving, sc.failureReason(park.Cancelled))
		return v, park.Cancelled
	}
	c.mu.Lock()
	v, r, asleep := c.take()
	if r == park.Data {
		c.mu.Unlock()
		f.went(asleep)
		return v, r
	}
	if r == park.None && d != 0 {
		cell := wait.Peek[T](f.task.Kit(), c.kind)
		t := f.arm(sc)
		asleep = c.publishRecv(cell, &f.task.Parker, t)
		c.mu.Unlock()
		f.rouse(asleep)
		if d > 0 {
			f.armTimer(t, d)
		}
		if f.parks(sc) {
			return v, park.None
		}
		return c.endRecv(f, sc, park.Cancelled, d > 0), park.Cancelled
	}
	return v, c.passed(f, receiving, r, asleep)
}

//go:noinline
//go:norace
func (c *Chan[T]) endRecv(f *Fiber, sc *scope, r park.Reason, timed bool) T {
	if timed && r != park.TimedOut {
		f.stopTimer()
	}
	k := f.task.Kit()
	v := c.leave(wait.Peek[T](k, c.kind), receiving, sc.failureReason(r))
	wait.Done[T](k, c.kind)
	return v
}

// put gives v away if that needs no wait: Data. It returns Closed, or None if v has to wait. If asleep is not nil the caller
// rouses it once it has let go of the lock.
//
// Spec: CH-05 (a taken value resumes one sender)
// Spec: CH-09 (a send prefers a waiting receiver)
// Spec: CH-20 (a waiting operation beats a passing one)
//
//go:norace
func (c *Chan[T]) put(v T) (r park.Reason, asleep *park.Parker) {
	if c.state != open {
		return park.Closed, nil
	}
	for {
		n := c.receivers.Shift()
		if n == nil {
			break
		}
		cell := wait.CellOf[T](n)
		filled(n)
		cell.Value = v
		if won, asleep := n.Claim(park.Data); won {
			c.sent++
			c.received++
			c.noteTransfer()
			if race.Enabled {
				c.store.Passed()
			}
			return park.Data, asleep
		}
		var zero T
		cell.Value = zero
	}
	n := c.store.Put(v)
	if n == 0 {
		return park.None, nil
	}
	c.sent++
	c.held = n
	c.high = max(c.high, n)
	c.noteTransfer()
	return park.Data, c.becameReady(receiving)
}

// take takes the oldest value if there is one: Data. It returns Closed, or None if one has to wait. A sender that waits for the
// room that was made moves in at once.
//
// Spec: CH-05 (a taken value resumes one sender)
// Spec: CH-10 (room goes to the longest-waiting sender)
// Spec: CH-19 (waiters are served in order)
// Spec: CH-20 (a waiting operation beats a passing one)
//
//go:norace
func (c *Chan[T]) take() (v T, r park.Reason, asleep *park.Parker) {
	if c.state == aborted {
		return v, park.Closed, nil
	}
	v, ok := c.store.Take()
	for {
		n := c.senders.Shift()
		if n == nil {
			break
		}
		cell := wait.CellOf[T](n)
		race.Meet(unsafe.Pointer(cell))
		next := cell.Value
		if won, asleep := n.Claim(park.Data); won {
			c.sent++
			c.received++
			c.noteTransfer()
			if ok {
				c.store.Put(next)
			} else {
				v = next
			}
			return v, park.Data, asleep
		}
	}
	if ok {
		c.held--
		c.received++
		c.noteTransfer()
		return v, park.Data, c.becameReady(sending)
	}
	if c.state == closed {
		return v, park.Closed, nil
	}
	return v, park.None, nil
}

// publishSend has a sender wait. The caller has found that it must, and still has the lock. It returns whom to rouse.
//
// Spec: CH-29 (a send is admitted if it sees the channel open)
// Spec: CH-50 (waiters are reached under the lock alone)
// Spec: CH-57 (a cancelled context never waits)
//
//go:norace
func (c *Chan[T]) publishSend(cell *wait.Cell[T], v T, p *park.Parker, t park.Ticket) (asleep *park.Parker) {
	c.offered(&cell.Node)
	cell.Value = v
	c.noteWait(&cell.Node)
	c.senders.Push(&cell.Node, p, t)
	return c.becameReady(receiving)
}

// publishRecv has a receiver wait.
//
// Spec: CH-32 (how a receive is admitted)
// Spec: CH-50 (waiters are reached under the lock alone)
//
//go:norace
func (c *Chan[T]) publishRecv(cell *wait.Cell[T], p *park.Parker, t park.Ticket) (asleep *park.Parker) {
	c.offered(&cell.Node)
	c.noteWait(&cell.Node)
	c.receivers.Push(&cell.Node, p, t)
	return c.becameReady(sending)
}

// offered, filled and taken tell the race detector, and explorations, what becomes of a cell: it is published, somebody is about to write its
// value, its owner has it back. They are not generic, because the compiler does not pass on the bodies of functions that only
// generic code calls: in programs that use a channel those would be calls, though they are empty.
//
//go:norace
func (c *core) offered(n *wait.Node) {
	invariant.Check(c.state == open, "somebody waits on a channel that is closed")
	race.Offer(unsafe.Pointer(n))
}

//go:norace
func filled(n *wait.Node) {
	race.Meet(unsafe.Pointer(n))
	xatomic.Writes(unsafe.Pointer(n))
}

//go:norace
func taken(n *wait.Node) {
	race.Meet(unsafe.Pointer(n))
	xatomic.Reads(unsafe.Pointer(n))
}

// leave ends a wait that was published: it takes the cell out if it is still in, counts, and returns what the cell holds if
// it was given something.
//
// Spec: CH-28 (an ended wait is unlinked before it returns)
// Spec: CH-55 (a value that was claimed is reported)
// Spec: CH-56 (a cancelled wait takes no value and no place)
//
//go:norace
func (c *Chan[T]) leave(cell *wait.Cell[T], side int, r park.Reason) (v T) {
	var zero T
	if r == park.Data { // the other side has let go of the cell
		taken(&cell.Node)
		if side == receiving {
			v = cell.Value
		}
		cell.Value, cell.Parker = zero, nil
		return v
	}
	c.mu.Lock()
	cell.Value = zero
	c.queue(side).Remove(&cell.Node)
	c.countFailure(side, r)
	c.mu.Unlock()
	cell.Parker = nil
	return v
}

// ready reports whether an operation of that side need not wait.
//
//go:norace
func (c *core) ready(side int) bool {
	if side == sending {
		return !c.receivers.Empty() || c.held < c.limit || c.state != open || c.over != Wait
	}
	return c.held > 0 || !c.senders.Empty() || c.state != open
}

//go:norace
func (c *core) queue(side int) *wait.Queue {
	if side == sending {
		return &c.senders
	}
	return &c.receivers
}

// passed ends an operation that did not wait, of f or, if that is nil, of a goroutine. It lets go of the lock.
//
// Spec: CH-43 (a fast operation leaves the scheduler alone)
//
//go:norace
func (c *core) passed(f *Fiber, side int, r park.Reason, asleep *park.Parker) park.Reason {
	if r != park.Data {
		if r == park.None {
			r = park.TimedOut
		}
		c.countFailure(side, r)
	}
	c.mu.Unlock()
	if f != nil {
		f.went(asleep)
	} else {
		asleep.Rouse(nil)
	}
	return r
}

// countFailed counts an operation whose context was already done.
//
//go:norace
func (c *core) countFailed(side int, r park.Reason) {
	c.mu.Lock()
	c.countFailure(side, r)
	c.mu.Unlock()
}

// reclassify counts a wait of any caller that leave has counted as cancelled as timed out, if it was. To find out it asks the
// context, which is foreign code, and not hidden: so only once the cell is out.
//
//go:norace
func (c *core) reclassify(by *caller, side int, r park.Reason) {
	if r != park.Cancelled {
		return
	}
	race.Enable()
	e := by.cancelled()
	race.Disable()
	if e.reason() == park.TimedOut {
		c.mu.Lock()
		c.failed[side].cancelled--
		c.failed[side].timedOut++
		c.mu.Unlock()
	}
}

// overrun does with v what the policy says, because there is no room. It lets go of the lock.
//
// Spec: CH-17 (the overflow policy decides a full send)
// Spec: CH-18 (dropped values are counted and handed over)
//
//go:norace
func (c *Chan[T]) overrun(v T) park.Reason {
	lost, r := c.displace(v)
	c.mu.Unlock()
	if r == park.Data {
		c.lose(lost)
	}
	return r
}

// refused is the end of a send that the policy has fail.
const refused = park.TimedOut + 1

// displace makes room for v by the policy, or drops v, and returns what was lost.
//
// Spec: CH-58 (a failing overflow is ErrWouldBlock)
//
//go:norace
func (c *Chan[T]) displace(v T) (lost T, r park.Reason) {
	switch c.over {
	case Fail:
		c.countFailure(sending, park.None)
		return lost, refused
	case DropOldest:
		if old, ok := c.store.Take(); ok {
			c.store.Put(v)
			v = old
		}
	}
	c.sent++
	c.dropped++
	c.noteTransfer()
	return v, park.Data
}

// lose hands a value over that is not delivered. It is called inside a hidden section, without the lock.
//
//go:norace
func (c *Chan[T]) lose(v T) {
	if c.undelivered != nil {
		race.Enable()
		c.undelivered(v)
		race.Disable()
	}
}

// sendSlow is Send for everybody else: goroutines, and fibers in a context that is not their own.
//
//go:noinline
//go:norace
func (c *Chan[T]) sendSlow(ctx context.Context, v T, d time.Duration) error {
	by := resolve(ctx)
	c.announceBy(&by, policy.Send)
	if e := by.ended(); e != nil {
		return c.failedBefore(sending, e)
	}
	race.Disable()
	c.mu.Lock()
	r, asleep := c.put(v)
	switch {
	case r == park.None && c.over != Wait:
		r = c.overrun(v)
		by.spend()
	case r != park.None || d == 0:
		r = c.passed(by.f, sending, r, asleep)
	default:
		w := by.waiter()
		cell := wait.Peek[T](w.kit, c.kind)
		t := by.arm(&w)
		asleep = c.publishSend(cell, v, w.p, t)
		c.mu.Unlock()
		asleep.Rouse(by.near())
		r = by.await(&w, t, by.deadline(d))
		c.leave(cell, sending, r)
		wait.Done[T](w.kit, c.kind)
		c.reclassify(&by, sending, r)
		w.done()
	}
	race.Enable()
	return c.callerErr(sending, r, &by)
}

//go:noinline
//go:norace
func (c *Chan[T]) recvSlow(ctx context.Context, d time.Duration) (v T, err error) {
	by := resolve(ctx)
	c.announceBy(&by, policy.Recv)
	if e := by.ended(); e != nil {
		return v, c.failedBefore(receiving, e)
	}
	race.Disable()
	c.mu.Lock()
	v, r, asleep := c.take()
	if r != park.None || d == 0 {
		r = c.passed(by.f, receiving, r, asleep)
	} else {
		w := by.waiter()
		cell := wait.Peek[T](w.kit, c.kind)
		t := by.arm(&w)
		asleep = c.publishRecv(cell, w.p, t)
		c.mu.Unlock()
		asleep.Rouse(by.near())
		r = by.await(&w, t, by.deadline(d))
		v = c.leave(cell, receiving, r)
		wait.Done[T](w.kit, c.kind)
		c.reclassify(&by, receiving, r)
		w.done()
	}
	race.Enable()
	return v, c.callerErr(receiving, r, &by)
}

// failedBefore counts an operation whose context was already done, and returns its error.
//
//go:norace
func (c *core) failedBefore(side int, e *ending) error {
	race.Disable()
	c.countFailed(side, e.reason())
	race.Enable()
	return e.on(c.verb(side))
}

// TrySend is Send that never waits: where it would have to it returns [ErrWouldBlock], and nothing has happened.
//
//go:norace
func (c *Chan[T]) TrySend(v T) error {
	// Spec: CH-22 (Try never waits and changes nothing)
	by := c.announce(policy.TrySend)
	race.Disable()
	c.mu.Lock()
	r, asleep := c.put(v)
	if r == park.None && c.over != Wait {
		r = c.overrun(v)
	} else {
		c.tried(sending, r, asleep)
	}
	race.Enable()
	if by != nil {
		by.stepped()
	}
	return c.resultErr(sending, r)
}

// TryRecv is Recv that never waits: where it would have to it returns [ErrWouldBlock].
//
//go:norace
func (c *Chan[T]) TryRecv() (T, error) {
	// Spec: CH-22 (Try never waits and changes nothing)
	by := c.announce(policy.TryRecv)
	race.Disable()
	c.mu.Lock()
	v, r, asleep := c.take()
	c.tried(receiving, r, asleep)
	race.Enable()
	if by != nil {
		by.stepped()
	}
	return v, c.resultErr(receiving, r)
}

// tried ends an operation that must not wait. It lets go of the lock.
//
//go:norace
func (c *core) tried(side int, r park.Reason, asleep *park.Parker) {
	if r != park.Data {
		c.countFailure(side, r)
	}
	c.mu.Unlock()
	if asleep != nil {
		asleep.Rouse(here())
	} else if r == park.None {
		if f := currentFiber(); f != nil && !f.simulated {
			f.spend() // whoever tries again and again must not keep the one from running that it waits for
		}
	}
}

// All returns the values that are received until the channel is closed and has nothing left, or ctx is over. It does not say which
// it was: where that matters return ctx.Err() after the loop, or receive with Recv.
func (c *Chan[T]) All(ctx context.Context) iter.Seq[T] { return received(ctx, c.Recv) }

func received[T any](ctx context.Context, recv func(context.Context) (T, error)) iter.Seq[T] {
	return func(yield func(T) bool) {
		for {
			v, err := recv(ctx)
			if err != nil || !yield(v) {
				return
			}
		}
	}
}

// Close ends the channel gently: later sends fail, values that the channel holds and senders that wait are still
// delivered, and then receivers get an error that is [ErrClosed]. It reports whether this call has closed it; closing
// again does nothing.
//
// It belongs to the sending side. Senders that wait already go on waiting for a receiver, so a receiver that leaves does not
// call Close but [Chan.Abort], or the channel is a [Pipe], where writers learn that the last reader is gone.
//
//go:norace
func (c *Chan[T]) Close() bool {
	// Spec: CH-34 (close is one step)
	// Spec: CH-35 (close is graceful)
	// Spec: CH-36 (a drained closed channel ends its receivers)
	// Spec: CH-38 (close and abort are idempotent)
	// Spec: CH-39 (close claims waiters as any waker does)
	by := c.announce(policy.Close)
	first := c.end(closed, nil)
	if by != nil {
		by.stepped()
	}
	return first
}

// Abort ends the channel at once: whoever waits gets an error that is [ErrClosed] and wraps the cause, and the values
// that the channel holds go to [OnUndelivered], all of them, even if the handler panics. It reports whether this call
// has closed the channel. On one that was closed before it discards what has not been delivered.
//
//go:norace
func (c *Chan[T]) Abort(cause error) bool {
	// Spec: CH-37 (abort is the hard close)
	// Spec: CH-38 (close and abort are idempotent)
	// Spec: CH-39 (close claims waiters as any waker does)
	by := c.announce(policy.Abort)
	first := c.end(aborted, cause)
	toEnd(c.discard)
	if by != nil {
		by.stepped()
	}
	return first
}

// end closes the channel as far as to. It reports whether it had been open.
//
//go:norace
func (c *core) end(to chanState, cause error) bool {
	race.Disable()
	c.mu.Lock()
	was := c.state
	if was < to {
		race.Enable()
		race.Release(unsafe.Pointer(&c.state)) // here, because a close that comes too late orders nobody
		race.Disable()
		if to == aborted {
			c.cause = cause
		}
		c.errs.Store(nil) // those of a closed channel have another text
		c.state = to
		for side := range 2 {
			if asleep := c.becameReady(side); asleep != nil {
				asleep.Rouse(here())
			}
		}
	}
	for c.endWaits() { // those who wait when it is closed cannot have been served, and none comes after
		c.mu.Lock()
	}
	race.Enable()
	return was == open
}

// endWaits wakes some of those whose wait the channel's state has ended. It lets go of the lock, and reports whether there
// may be more.
//
//go:norace
func (c *core) endWaits() (more bool) {
	var batch wakes
	batch.claim(&c.receivers, park.Closed)
	if c.state == aborted {
		batch.claim(&c.senders, park.Closed)
	}
	c.mu.Unlock()
	more = batch.full()
	batch.rouse()
	return more
}

// discard hands a value of an aborted channel over, if there is one left. It reports whether there was.
//
//go:norace
func (c *Chan[T]) discard() bool {
	race.Disable()
	c.mu.Lock()
	v, ok := c.store.Take()
	if ok {
		c.held--
		c.dropped++
	}
	c.mu.Unlock()
	if ok {
		c.lose(v)
	}
	race.Enable()
	return ok
}

// opErr returns the error of an operation under sc that ended for r.
//
//go:noinline
//go:norace
func (c *core) opErr(side int, r park.Reason, sc *scope) error {
	if r == park.Cancelled {
		return sc.ending().on(c.verb(side))
	}
	return c.resultErr(side, r)
}

// callerErr is opErr for any caller.
//
//go:norace
func (c *core) callerErr(side int, r park.Reason, by *caller) error {
	if r == park.Cancelled {
		return by.cancelled().on(c.verb(side))
	}
	return c.resultErr(side, r)
}

// resultErr returns the error of an operation that ended for r, which is not Cancelled.
//
//go:norace
func (c *core) resultErr(side int, r park.Reason) error {
	switch r {
	case park.Data:
		return nil
	case park.Closed:
		race.Acquire(unsafe.Pointer(&c.state))
		if c.name == "" && c.state == closed {
			return ErrClosed
		}
		return &c.errors(side).closed
	case park.TimedOut:
		if c.name == "" {
			return ErrTimeout
		}
		return &c.errors(side).timeout
	}
	if c.name == "" {
		return ErrWouldBlock
	}
	return &c.errors(side).wouldBlock
}

// verb returns what an operation of that side does, for its error; it is empty if the channel has no name.
//
//go:norace
func (c *core) verb(side int) string {
	switch {
	case c.name == "":
		return ""
	case side == sending:
		return "send on " + c.name
	}
	return "receive from " + c.name
}

// errors returns the errors of one side. It takes the lock the first time, so that they agree with the channel's state.
//
//go:norace
func (c *core) errors(side int) *sideErrors {
	race.Disable()
	defer race.Enable()
	errs := c.errs.Load()
	if errs == nil {
		c.mu.Lock()
		errs = new([2]sideErrors)
		how := byClose
		if c.state == aborted {
			how = byAbort
		}
		for side := range errs {
			e, op := &errs[side], c.verb(side)
			e.closed = closedError{op, c.cause, how}
			e.wouldBlock.op, e.timeout.op = op, op
		}
		c.errs.Store(errs)
		c.mu.Unlock()
	}
	return &errs[side]
}
