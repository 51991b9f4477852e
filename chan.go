package coir

import (
	"context"
	"errors"
	"iter"
	"time"
	"unsafe"

	"github.com/coir-go/coir/internal/channel"
	"github.com/coir-go/coir/internal/clock"
	"github.com/coir-go/coir/internal/flavor"
	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/wait"
	"github.com/coir-go/coir/internal/xatomic"
)

// Chan passes values of type T between fibers and goroutines, in any mix. Any number of them may send and receive at
// the same time.
//
// The capacity sets the kind of channel. With capacity 0, a send returns once a receiver has taken the value. With
// capacity n, the channel buffers up to n values. See also [Unbounded] and [Conflated]. [WithOverflow] sets what a send
// does when the buffer is full.
//
// Values of one sender are received in the order in which they were sent. Waiting operations are served in the order of
// arrival, and no later operation overtakes them. If a send returns an error, the value still belongs to the sender. If
// a receive returns an error, it has not received a value.
//
// A channel need not be closed to be garbage collected.
type Chan[T any] struct {
	core core
	ch   channel.Chan[T]
}

// core is the part of a channel that does not depend on the type of its values. Errors and policies use it.
type core struct {
	ch    *channel.Core // the same channel's channel.Core
	rt    *Runtime      // the runtime that the channel was made on, or nil if that runtime has no policy
	name  string
	cause error // the cause given to Abort; written under the lock, before the state
	errs  xatomic.Pointer[[2]sideErrors]
	looks *looks // how reports and snapshots show the channel; nil if neither Describe nor Show was called
}

// notMade returns the text of the panic for the use of a zero Chan, Selector or Timer. The caller must panic while
// synchronisation is not hidden, because the panic may be recovered. The fast paths of a Chan do not check for a zero
// Chan. They leave it to the slow paths, because channel.Core.Plain returns false for it.
//
//go:noinline
//go:norace
func notMade(what string) any {
	return "coir: use of a " + what + " that was not made by New" + what
}

// sideErrors holds the errors of one side of a channel that has a name or a cause. They are made on first use and kept,
// so that repeated failures do not allocate.
type sideErrors struct {
	closed     closedError
	wouldBlock wouldBlockError
	timeout    timeoutError
}

// Short names for the two sides.
const (
	sending   = channel.Sending
	receiving = channel.Receiving
)

// NewChan makes a channel. The capacity is the number of values that the channel can hold, which must not be negative,
// or [Unbounded] or [Conflated]. NewChan panics if the capacity is negative.
//
//go:noinline
func NewChan[T any](capacity int, opts ...ChanOption) *Chan[T] {
	set := settingsOf(opts)
	limit, store, over := kindOf[T](capacity, set.over)
	return newChan(limit, store, over, set)
}

// newChan makes a channel that holds up to limit values in store, or in a ring if store is nil.
func newChan[T any](limit int, store flavor.Store[T], over OverflowPolicy, set *chanSettings) *Chan[T] {
	c := new(Chan[T])
	c.core.ch, c.core.name, c.core.rt = &c.ch.Core, set.name, simulatedBy()
	var clk clock.Clock
	if set.timed {
		clk = clockHere()
	}
	c.ch.Init(limit, store, channel.Overflow(over), clk)
	c.ch.Undelivered = handler[T](set)
	if c.core.rt != nil {
		c.core.rt.policy.Made(c.ch.ID(), limit)
	}
	if set.name != "" && listing.on.Load() {
		listChan(&c.core)
	}
	return c
}

// Send sends v on the channel. It waits until there is a receiver or room in the buffer, unless [WithOverflow] sets
// another policy. If the channel is closed, it returns an error that is [ErrClosed]. If ctx is done, it returns the
// error of ctx.
func (c *Chan[T]) Send(ctx context.Context, v T) error {
	// Spec: CH-03 (a rendezvous send returns when the value is taken)
	// Spec: CH-41 (a send on a closed channel is an error)
	return c.send(ctx, v, forever)
}

// SendTimeout is like Send, but waits for at most d and then returns [ErrTimeout].
func (c *Chan[T]) SendTimeout(ctx context.Context, v T, d time.Duration) error {
	// Spec: CH-23 (a deadline ends a wait with ErrTimeout)
	// Spec: CH-27 (a timed wait never polls)
	return c.send(ctx, v, max(d, 0))
}

// How a value gets from Send to Recv.
//
// The functions send, sendAny, sendGuest, recv, recvAny and recvGuest take the same four steps. They differ in the
// callers that they serve.
//
//  1. Try. The caller locks the channel and tries the operation with Put or Take. Either the operation ends, with a
//     value or because the channel is closed, or nothing has changed. In the second case the caller keeps the lock, so
//     that no peer can act before step 2.
//  2. Publish. The caller takes a cell from its kit (a sender puts the value into it), arms its parker, adds the cell
//     to the channel's queue, and unlocks. A peer that locks the channel from now on finds the cell, so no peer can
//     miss the wait. Until the wait has ended, the cell belongs to the channel. To end the wait, a waker must claim it
//     by its ticket. So exactly one of data, close, cancellation and timeout ends the wait.
//  3. Park. The caller sleeps until the wait has ended. It checks for a cancellation only after it has armed its
//     parker, and a canceller looks for armed parkers only after it has set its flag, so no cancellation is missed.
//     After this step the wait has ended for one reason, and a later waker changes nothing.
//  4. Finish. If the reason is Data, the peer has removed the cell from the queue and passed the value. Otherwise
//     Finish withdraws the cell under the lock: a sender keeps its value, and a receiver has not received one. The
//     caller owns the cell again, and its kit keeps it for the next wait.
//
// A value takes one of three routes:
//
//   - A receiver waits. In step 1 of the sender, Put writes the value into the receiver's cell and claims the wait. The
//     receiver takes the value out of its cell in step 4.
//   - A sender waits. In step 1 of the receiver, Take claims the wait and takes the value out of the sender's cell, or
//     moves it into the buffer. The sender sees this in step 4.
//   - Neither waits. In step 1 of the sender, Put stores the value in the buffer. In step 1 of the receiver, Take finds
//     it there.
//
// Package internal/channel implements Put, Take, Publish and Finish, and explains why a cancelled receive cannot lose a
// value.

// send implements Send and SendTimeout. It waits for at most d, or without limit if d is forever. It is the fast path
// for a fiber under its own context, on a channel that is neither watched nor timed, if the send succeeds immediately
// or has to wait. It leaves all other cases to sendAny, which starts over. Goroutines go through sendGuest first: see
// guest.go.
//
// Send is inlined into its callers, so send is the only frame between the caller and the switch.
//
//go:norace
func (c *Chan[T]) send(ctx context.Context, v T, d time.Duration) error {
	f, sc := scopeOf(ctx)
	if race.Enabled || f == nil || f.simulated {
		return c.sendGuest(ctx, v, d)
	}
	if !f.task.Here() {
		return c.sendAny(ctx, v, d)
	}
	if sc.mayBeDone() {
		return c.sendAny(ctx, v, d)
	}
	// 1. Try.
	ch := &c.ch
	ch.Lock()
	if !ch.Plain() {
		ch.Unlock()
		return c.sendAny(ctx, v, d)
	}
	ch.UsedBy(sending, f.id)
	r, ready := ch.Put(v)
	if r == park.Data {
		ch.Unlock()
		f.ready(ready)
		f.charge()
		return nil
	}
	if r != park.None || d == 0 || ch.Overflows() {
		ch.Unlock()
		return c.sendAny(ctx, v, d)
	}
	// 2. Publish.
	cell := wait.CellOf[T](f.task.Kit().Solo(ch.Cells()))
	if cell == nil {
		cell = wait.SoloCell[T](f.task.Kit(), ch.Cells())
	}
	cell.Value = v
	f.waitUnder(sc)
	f.task.Kit().On = (*toSend)(&c.core)
	t := f.task.Arm()
	ch.Publish(sending, &cell.Node, &f.task.Parker, t)
	ch.Unlock()
	// 3. Park.
	if d > 0 {
		f.armTimer(t, d)
	}
	if f.shouldPark(sc) {
		// Task.Park, inlined by hand to save a frame: see Task.BeginPark.
		if s := f.task.BeginPark(); s != nil {
			if s.Odd {
				s.Next()
			} else {
				s.Yield(struct{}{})
			}
			f.task.EndPark()
		}
		r = f.task.Reason()
	}
	if d > 0 && r != park.TimedOut {
		f.stopTimer()
	}
	// 4. Finish.
	if r != park.Data {
		return c.sendFailed(f, sc, cell, r)
	}
	ch.Took(cell)
	wait.Done[T](f.task.Kit(), ch.Cells())
	return nil
}

// sendFailed is step 4 of a send whose wait ended with a reason r other than Data. If r is None, no wait began, because
// sc was cancelled.
//
//go:noinline
//go:norace
func (c *Chan[T]) sendFailed(f *Fiber, sc *scope, cell *wait.Cell[T], r park.Reason) error {
	if r == park.None {
		r = park.Cancelled
	}
	c.ch.Finish(sending, cell, sc.failureReason(r))
	wait.Done[T](f.task.Kit(), c.ch.Cells())
	return c.core.opErr(sending, r, sc)
}

// sendAny implements send for every kind of caller. It also serves what the fast paths leave to it: see send and
// sendGuest. Without the fast paths send and recv, the rendezvous comparison in bench/ratios takes 1.57 times as long.
//
//go:noinline
//go:norace
func (c *Chan[T]) sendAny(ctx context.Context, v T, d time.Duration) error {
	by := resolve(ctx)
	c.core.announceBy(&by, policy.Send)
	if e := by.refused(); e != nil {
		return c.core.failedBefore(sending, e)
	}
	// 1. Try.
	ch := &c.ch
	race.Disable()
	ch.Lock()
	by.uses(c.core.ch, sending)
	r, ready := ch.Put(v)
	switch {
	case r == park.None && ch.Overflows():
		r = c.overrun(v)
		if by.f != nil && by.f.simulated {
			by.f.tell(c.core.overrunOutcome(r), -1)
		}
		by.charge()
	case r != park.None || d == 0:
		r = c.core.finishLocked(&by, sending, r, ready)
	default:
		// 2. Publish.
		w := by.waiter()
		cell := wait.SoloCell[T](w.kit, ch.Cells())
		t := by.arm(&w, (*toSend)(&c.core))
		ch.PublishSend(cell, v, w.p, t)
		c.core.unlock(nil, by.worker())
		// 3. Park.
		r = by.await(&w, t, by.deadline(d))
		// 4. Finish.
		ch.Finish(sending, cell, by.failureReason(r))
		wait.Done[T](w.kit, ch.Cells())
		c.core.countForeign(&by, sending, r)
		w.done()
	}
	race.Enable()
	return c.core.callerErr(sending, r, &by)
}

// Recv receives the next value, and waits until there is one. If the channel is closed and empty, it returns an error
// that is [ErrClosed]. If ctx is done, it returns the error of ctx.
func (c *Chan[T]) Recv(ctx context.Context) (T, error) { return c.recv(ctx, forever) }

// RecvTimeout is like Recv, but waits for at most d and then returns [ErrTimeout].
func (c *Chan[T]) RecvTimeout(ctx context.Context, d time.Duration) (T, error) {
	// Spec: CH-23 (a deadline ends a wait with ErrTimeout)
	// Spec: CH-27 (a timed wait never polls)
	return c.recv(ctx, max(d, 0))
}

// recv implements Recv and RecvTimeout. It waits for at most d, or without limit if d is forever. It takes the same
// four steps as send.
//
//go:norace
func (c *Chan[T]) recv(ctx context.Context, d time.Duration) (T, error) {
	f, sc := scopeOf(ctx)
	if race.Enabled || f == nil || f.simulated {
		return c.recvGuest(ctx, d)
	}
	if !f.task.Here() {
		return c.recvAny(ctx, d)
	}
	if sc.mayBeDone() {
		return c.recvAny(ctx, d)
	}
	// 1. Try.
	ch := &c.ch
	ch.Lock()
	if !ch.Plain() {
		ch.Unlock()
		return c.recvAny(ctx, d)
	}
	ch.UsedBy(receiving, f.id)
	v, r, ready := ch.Take()
	if r == park.Data {
		ch.Unlock()
		f.ready(ready)
		f.charge()
		return v, nil
	}
	if r != park.None || d == 0 {
		ch.Unlock()
		return c.recvAny(ctx, d)
	}
	// 2. Publish.
	cell := wait.CellOf[T](f.task.Kit().Solo(ch.Cells()))
	if cell == nil {
		cell = wait.SoloCell[T](f.task.Kit(), ch.Cells())
	}
	f.waitUnder(sc)
	f.task.Kit().On = (*toRecv)(&c.core)
	t := f.task.Arm()
	ch.Publish(receiving, &cell.Node, &f.task.Parker, t)
	ch.Unlock()
	// 3. Park.
	if d > 0 {
		f.armTimer(t, d)
	}
	if f.shouldPark(sc) {
		// Task.Park, inlined by hand: see Task.BeginPark.
		if s := f.task.BeginPark(); s != nil {
			if s.Odd {
				s.Next()
			} else {
				s.Yield(struct{}{})
			}
			f.task.EndPark()
		}
		r = f.task.Reason()
	}
	if d > 0 && r != park.TimedOut {
		f.stopTimer()
	}
	// 4. Finish.
	if r != park.Data {
		return v, c.recvFailed(f, sc, cell, r)
	}
	v = ch.Took(cell)
	wait.Done[T](f.task.Kit(), ch.Cells())
	return v, nil
}

// recvFailed is step 4 of a receive whose wait ended with a reason r other than Data. See sendFailed.
//
//go:noinline
//go:norace
func (c *Chan[T]) recvFailed(f *Fiber, sc *scope, cell *wait.Cell[T], r park.Reason) error {
	if r == park.None {
		r = park.Cancelled
	}
	c.ch.Finish(receiving, cell, sc.failureReason(r))
	wait.Done[T](f.task.Kit(), c.ch.Cells())
	return c.core.opErr(receiving, r, sc)
}

// recvAny implements recv for every kind of caller. See sendAny.
//
//go:noinline
//go:norace
func (c *Chan[T]) recvAny(ctx context.Context, d time.Duration) (v T, err error) {
	by := resolve(ctx)
	c.core.announceBy(&by, policy.Recv)
	if e := by.refused(); e != nil {
		return v, c.core.failedBefore(receiving, e)
	}
	// 1. Try.
	ch := &c.ch
	race.Disable()
	ch.Lock()
	by.uses(c.core.ch, receiving)
	v, r, ready := ch.Take()
	if r != park.None || d == 0 {
		r = c.core.finishLocked(&by, receiving, r, ready)
	} else {
		// 2. Publish.
		w := by.waiter()
		cell := wait.SoloCell[T](w.kit, ch.Cells())
		t := by.arm(&w, (*toRecv)(&c.core))
		ch.PublishRecv(cell, w.p, t)
		c.core.unlock(nil, by.worker())
		// 3. Park.
		r = by.await(&w, t, by.deadline(d))
		// 4. Finish.
		v = ch.Finish(receiving, cell, by.failureReason(r))
		wait.Done[T](w.kit, ch.Cells())
		c.core.countForeign(&by, receiving, r)
		w.done()
	}
	race.Enable()
	return v, c.core.callerErr(receiving, r, &by)
}

// unlock unlocks the channel, and then readies p and any Selectors that the operation has notified.
//
//go:norace
func (c *core) unlock(p *park.Parker, here park.Place) {
	if c.ch.Plain() {
		c.ch.Unlock()
		p.MakeReady(here)
		return
	}
	woken := c.ch.TakeWoken()
	c.ch.Unlock()
	if here == nil && woken != nil {
		here = currentWorker()
	}
	p.MakeReady(here)
	readySelectors(woken, here)
}

// readySelectors readies the Selectors in the list w, which an operation has notified.
//
//go:norace
func readySelectors(w *channel.Watch, here park.Place) {
	for w != nil {
		p, next := w.Next()
		p.MakeReady(here)
		w = next
	}
}

// finishLocked completes an operation that did not wait, and unlocks the channel. It returns the reason with which the
// operation ended, in which a timeout replaces None.
//
// Spec: CH-43 (a fast operation leaves the scheduler alone)
//
//go:norace
func (c *core) finishLocked(by *caller, side channel.Side, r park.Reason, ready *park.Parker) park.Reason {
	if r != park.Data {
		if r == park.None {
			r = park.TimedOut
		}
		c.ch.Count(side, r)
	}
	c.unlock(ready, by.worker())
	if by.f != nil && by.f.simulated {
		by.f.tell(outcomeOf(r), -1)
	}
	by.charge()
	return r
}

// countForeign counts a wait that has ended, with reason r, if Finish has left it uncounted: see caller.failureReason.
// It runs only after the wait has been withdrawn, because it calls methods of the context. They are foreign code, whose
// synchronisation must stay visible.
//
//go:norace
func (c *core) countForeign(by *caller, side channel.Side, r park.Reason) {
	if r != park.Cancelled || by.sc != nil {
		return
	}
	race.EnterUser()
	e := by.cancelled()
	race.LeaveUser()
	c.ch.Fail(side, e.reason()) // once: a counter that is corrected later would go back
}

// overrun applies the overflow policy to v, for which there is no room. It unlocks the channel.
//
// Spec: CH-17 (the overflow policy decides a full send)
// Spec: CH-18 (dropped values are counted and handed over)
//
//go:norace
func (c *Chan[T]) overrun(v T) park.Reason {
	lost, r := c.ch.Displace(v)
	c.ch.Unlock()
	if r == park.Data {
		c.undeliver(lost)
	}
	return r
}

// undeliver passes a value that will not be delivered to OnUndelivered. It is called inside a hidden section, without
// the lock.
//
//go:norace
func (c *Chan[T]) undeliver(v T) {
	race.EnterUser()
	c.handBack(v)
	race.LeaveUser()
}

// handBack calls the channel's OnUndelivered handler with v, if there is a handler.
func (c *Chan[T]) handBack(v T) {
	if c.ch.Undelivered != nil {
		c.ch.Undelivered(v)
	}
}

// failedBefore counts an operation whose context was already done, and returns its error.
//
//go:norace
func (c *core) failedBefore(side channel.Side, e *ending) error {
	race.Disable()
	c.ch.Fail(side, e.reason())
	race.Enable()
	return e.on(c.verb(side))
}

// TrySend is like Send, but never waits. If it would have to wait, it returns [ErrWouldBlock] and changes nothing.
//
//go:norace
func (c *Chan[T]) TrySend(v T) error {
	// Spec: CH-22 (Try never waits and changes nothing)
	by := c.core.announce(policy.TrySend)
	race.Disable()
	c.ch.Lock()
	c.ch.UsedBy(sending, channel.Unknown)
	r, ready := c.ch.Put(v)
	over := r == park.None && c.ch.Overflows()
	if over {
		r = c.overrun(v)
	} else {
		c.core.finishTryLocked(sending, r, ready)
	}
	race.Enable()
	if by != nil {
		how := outcomeOf(r)
		if over {
			how = c.core.overrunOutcome(r)
		}
		by.tell(how, -1)
		by.stepped()
	}
	return c.core.resultErr(sending, r)
}

// TryRecv is like Recv, but never waits. If it would have to wait, it returns [ErrWouldBlock].
//
//go:norace
func (c *Chan[T]) TryRecv() (T, error) {
	// Spec: CH-22 (Try never waits and changes nothing)
	by := c.core.announce(policy.TryRecv)
	race.Disable()
	c.ch.Lock()
	c.ch.UsedBy(receiving, channel.Unknown)
	v, r, ready := c.ch.Take()
	c.core.finishTryLocked(receiving, r, ready)
	race.Enable()
	if by != nil {
		by.tell(outcomeOf(r), -1)
		by.stepped()
	}
	return v, c.core.resultErr(receiving, r)
}

// finishTryLocked completes a Try operation, and unlocks the channel.
//
//go:norace
func (c *core) finishTryLocked(side channel.Side, r park.Reason, ready *park.Parker) {
	if r != park.Data {
		c.ch.Count(side, r)
	}
	if ready != nil || !c.ch.Plain() {
		c.unlock(ready, currentWorker())
	} else {
		c.ch.Unlock()
	}
	if r == park.None {
		if f := currentFiber(); f != nil && !f.simulated {
			f.charge() // a fiber that polls must let other fibers run, one of which it polls for
		}
	}
}

// All returns an iterator over the received values. The iterator ends when the channel is closed and empty. If a
// receive fails earlier, because ctx has ended or the channel was aborted, the last pair is the zero value and the
// error. Always use both loop variables: a loop with only the first one compiles, but ignores the error and treats the
// zero value as a received value.
//
//	for order, err := range orders.All(ctx) {
//		if err != nil {
//			return err
//		}
//		...
//	}
func (c *Chan[T]) All(ctx context.Context) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			v, err := c.Recv(ctx) // not through a method value: see package source
			if c.core.drained(err) || !yield(v, err) || err != nil {
				return
			}
		}
	}
}

// drained reports whether err is the error of a receive that failed because the channel is closed and empty.
func (c *core) drained(err error) bool { return errors.Is(err, ErrClosed) && c.ch.Drained() }

// Close closes the channel. Later sends fail. Values in the buffer, and the values of senders that are already waiting,
// are still delivered; after that, receivers get an error that is [ErrClosed]. Close reports whether this call closed
// the channel. Closing a closed channel does nothing.
//
// Close is for the sending side. Senders that are already waiting continue to wait for a receiver. A receiver that
// stops receiving should call [Chan.Abort] instead, or use a [Pipe], which tells the writers when the last reader has
// gone.
//
//go:norace
func (c *Chan[T]) Close() bool {
	// Spec: CH-34 (close is one step)
	// Spec: CH-35 (close is graceful)
	// Spec: CH-36 (a drained closed channel ends its receivers)
	// Spec: CH-38 (close and abort are idempotent)
	// Spec: CH-39 (close claims waiters as any waker does)
	by := c.core.announce(policy.Close)
	first := c.core.end(channel.Closed, nil)
	if by != nil {
		by.tellFirst(first)
		by.stepped()
	}
	return first
}

// Abort closes the channel immediately. Waiting operations return an error that is [ErrClosed] and wraps the cause.
// Every value that the channel holds is passed to [OnUndelivered], even if the handler panics. Abort reports whether
// this call closed the channel. On a channel that was already closed, Abort discards the values that have not been
// delivered.
//
//go:norace
func (c *Chan[T]) Abort(cause error) bool {
	// Spec: CH-37 (abort is the hard close)
	// Spec: CH-38 (close and abort are idempotent)
	// Spec: CH-39 (close claims waiters as any waker does)
	by := c.core.announce(policy.Abort)
	first := c.core.end(channel.Aborted, cause)
	callAll(c.discard)
	if by != nil {
		by.tellFirst(first)
		by.stepped()
	}
	return first
}

// end changes the channel's state to Closed or Aborted, and wakes the waiters whose waits this ends. It reports whether
// the channel was open.
//
//go:norace
func (c *core) end(to channel.State, cause error) bool {
	race.Disable()
	c.ch.Lock()
	was := c.ch.State()
	if was < to {
		race.Enable()
		race.Release(unsafe.Pointer(c)) // only the first close orders anything
		race.Disable()
		if to == channel.Aborted {
			c.cause = cause
		}
		c.errs.Store(nil) // the error texts of a closed channel are different
		c.ch.Close(to)
		c.ch.TellBoth()
	}
	for { // wake the waiters in batches; no wait starts after the close
		var batch channel.Wakes
		c.ch.EndWaits(&batch)
		more := batch.Full()
		c.unlockBatch(&batch)
		if !more {
			break
		}
		c.ch.Lock()
	}
	race.Enable()
	return was == channel.Open
}

// discard passes one value of an aborted channel to OnUndelivered. It reports whether there was a value left.
//
//go:norace
func (c *Chan[T]) discard() bool {
	race.Disable()
	c.ch.Lock()
	v, ok := c.ch.Discard()
	c.ch.Unlock()
	if ok {
		c.undeliver(v)
	}
	race.Enable()
	return ok
}

// opErr returns the error of an operation under sc that ended with reason r.
//
//go:noinline
//go:norace
func (c *core) opErr(side channel.Side, r park.Reason, sc *scope) error {
	if r == park.Cancelled {
		return sc.ending().on(c.verb(side))
	}
	return c.resultErr(side, r)
}

// callerErr is like opErr, for any caller.
//
//go:norace
func (c *core) callerErr(side channel.Side, r park.Reason, by *caller) error {
	if r == park.Data {
		return nil
	}
	if r == park.Cancelled {
		e := by.cancelled()
		if by.f != nil && by.f.simulated {
			by.f.tell(outcomeOf(e.reason()), -1)
		}
		return e.on(c.verb(side))
	}
	return c.resultErr(side, r)
}

// resultErr returns the error of an operation that ended with reason r, which is not Cancelled.
//
//go:norace
func (c *core) resultErr(side channel.Side, r park.Reason) error {
	switch r {
	case park.Data:
		return nil
	case park.Closed:
		race.Acquire(unsafe.Pointer(c))
		if c.name == "" && c.ch.State() == channel.Closed {
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

// verb returns the operation and channel named in the errors of one side, such as "send on jobs", or "" if the channel
// has no name.
//
//go:norace
func (c *core) verb(side channel.Side) string {
	switch {
	case c.name == "":
		return ""
	case side == sending:
		return "send on " + c.name
	}
	return "receive from " + c.name
}

// errors returns the errors of one side. It creates them under the lock, so that they agree with the channel's state.
//
//go:norace
func (c *core) errors(side channel.Side) *sideErrors {
	race.Disable()
	defer race.Enable()
	errs := c.errs.Load()
	if errs == nil {
		c.ch.Lock()
		errs = new([2]sideErrors)
		how := byClose
		if c.ch.State() == channel.Aborted {
			how = byAbort
		}
		for side := range errs {
			e, op := &errs[side], c.verb(channel.Side(side))
			e.closed = closedError{op, c.cause, how}
			e.wouldBlock.op, e.timeout.op = op, op
		}
		c.errs.Store(errs)
		c.ch.Unlock()
	}
	return &errs[side]
}
