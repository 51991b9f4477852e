package coir

import (
	"context"

	"github.com/coir-go/coir/internal/channel"
	"github.com/coir-go/coir/internal/coro"
	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/wait"
)

// Asynchronous operations: the call returns immediately, and a promise is completed later.
//
// Each operation is a child fiber that starts in the waiting state. Its parker is armed, like that of a parked fiber,
// and is in the channel's queue before the child has run. When the wait ends, the child becomes runnable, like any
// fiber, and only then gets a stack. The operation therefore has its place in the queue when the call returns. Peers
// and cancellations claim it like any other operation, the nursery waits for it, and the child completes the promise on
// a worker.

// SendAsync starts to send v and returns without waiting. The returned promise is resolved when v has been sent. If the
// send fails, the promise is rejected with the error that [Chan.Send] would have returned, and v still belongs to the
// caller. Only the send completes the promise: [Promise.Resolve] and [Promise.Reject] change nothing and return false.
// To give up the send, cancel n.
//
// The send takes its place among all sends before SendAsync returns, so values are received in the order of the calls.
// The send is a child of n: cancelling n ends it, and the Run that opened n waits for it. An error of the send rejects
// the promise and does not fail n. The send does not count against [Nursery.Limit].
//
//go:noinline
func (c *Chan[T]) SendAsync(n *Nursery, v T) *Promise[struct{}] {
	op := new(struct {
		async[T]
		p Promise[struct{}]
	})
	op.cell.Value = v
	op.p.take() // no other call may complete it
	op.begin(n, c, sending, "Chan.SendAsync", coro.CallerPC(), func(context.Context) error {
		_, err := op.end()
		complete(&op.p, struct{}{}, err)
		return nil // the promise reports the error
	})
	return &op.p
}

// RecvAsync starts to receive a value and returns without waiting. The returned promise is resolved with the value. If
// the receive fails, the promise is rejected with the error that [Chan.Recv] would have returned. A promise that is
// never read keeps its value: no other receiver gets it. As with [Chan.SendAsync], only the receive completes the
// promise.
//
// The receive takes its place among all receives before RecvAsync returns. It is a child of n, like the send of
// [Chan.SendAsync].
//
//go:noinline
func (c *Chan[T]) RecvAsync(n *Nursery) *Promise[T] {
	op := new(struct {
		async[T]
		p Promise[T]
	})
	op.p.take()
	op.begin(n, c, receiving, "Chan.RecvAsync", coro.CallerPC(), func(context.Context) error {
		v, err := op.end()
		complete(&op.p, v, err)
		return nil
	})
	return &op.p
}

// complete completes p, which belongs to the operation, with the operation's result.
func complete[T any](p *Promise[T], v T, err error) {
	if err == nil {
		p.complete(v, nil, verbResolve, true)
		return
	}
	var none T
	p.complete(none, err, verbReject, true)
}

// async is an asynchronous operation on a channel, and the fiber that completes it.
type async[T any] struct {
	f    Fiber
	c    *Chan[T]
	side channel.Side
	r    park.Reason // why the operation ended; None if its cell was published: then the fiber's wait has the reason
	cell wait.Cell[T]
}

// begin starts the fiber and performs the operation on its behalf. The fiber runs fn when the operation has ended. A
// send takes its value from the cell.
//
//go:norace
func (a *async[T]) begin(n *Nursery, c *Chan[T], side channel.Side, what string, pc uintptr,
	fn func(context.Context) error) {
	if c.core.ch == nil {
		panic(notMade("Chan"))
	}
	a.c, a.side = c, side
	n.Go(what, fn, FiberOption{fiber: &a.f, pc: pc, role: bornWaiting})
	kind, as := policy.SendAsync, policy.Send
	if side == receiving {
		kind, as = policy.RecvAsync, policy.Recv
	}
	by := c.core.announce(kind)
	race.Disable()
	if a.f.simulated {
		n.rt.policy.Waits(&a.f, c.core.op(as))
	}
	a.do(currentWorker())
	race.Enable()
	by.stepped()
}

// do performs the operation, or starts a wait for it. It arms the fiber only when the operation has to wait, and under
// the channel's lock, because a cancellation must not end a wait whose value has already been passed on.
//
// Guarded by TestExploreAsync.
//
// Spec: CH-52 (async operations return a promise)
//
//go:norace
func (a *async[T]) do(here park.Place) {
	f, sc, ch := &a.f, &a.f.nursery.scope, &a.c.ch
	if sc.done() {
		ch.Fail(a.side, sc.failureReason(park.Cancelled))
		a.r = park.Cancelled
		f.task.MakeReady(here)
		return
	}
	f.waitUnder(sc)
	var ready *park.Parker
	ch.Lock()
	ch.UsedBy(a.side, channel.Unknown) // f ends with the operation, so it does not count as a user of the channel
	if a.side == receiving {
		a.cell.Value, a.r, ready = ch.Take()
	} else {
		a.r, ready = ch.Put(a.cell.Value)
	}
	if a.r == park.None && a.side == sending && ch.Overflows() {
		a.overrun(here)
		return
	}
	if a.r != park.None {
		if a.r != park.Data {
			ch.Count(a.side, a.r)
		}
		a.c.core.unlock(ready, here)
		f.task.MakeReady(here)
		return
	}
	t := f.task.ArmParked()
	if a.side == receiving {
		ch.PublishRecv(&a.cell, &f.task.Parker, t)
	} else {
		ch.PublishSend(&a.cell, a.cell.Value, &f.task.Parker, t)
	}
	a.c.core.unlock(nil, here)
	// From here on the fiber may run and end at any time.
	if sc.state.Load() == scopeCancelled { // a cancellation before ArmParked did not find the wait
		f.task.Wake(t, park.Cancelled, here)
	}
}

// overrun applies the overflow policy to a send on a full channel, and unlocks the channel. It calls the handler of
// OnUndelivered last, because the handler may panic.
//
//go:norace
func (a *async[T]) overrun(here park.Place) {
	c := a.c
	lost, r := c.ch.Displace(a.cell.Value)
	c.ch.Unlock()
	a.r = r
	a.f.task.MakeReady(here)
	if r == park.Data {
		c.undeliver(lost)
	}
}

// end returns the result of the operation. The fiber calls it.
//
//go:norace
func (a *async[T]) end() (v T, err error) {
	sc := &a.f.nursery.scope
	race.Disable()
	r := a.r
	if r == park.None {
		r = a.f.task.Reason()
		v = a.c.ch.Finish(a.side, &a.cell, sc.failureReason(r))
	} else if a.side == receiving {
		v = a.cell.Value
	}
	race.Enable()
	if r != park.Data {
		return v, a.c.core.opErr(a.side, r, sc)
	}
	return v, nil
}
