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

// Operations that do not wait, and complete a promise later.
//
// Each is a child of a nursery that is born waiting: its parker is armed, as that of a parked fiber is, and stands in
// the queue of the channel before the child has ever run. Whatever ends the wait makes the child runnable, as it would
// any fiber, and only then is there a stack for it. So the place in the queue is taken when the call returns, peers and
// cancels claim the operation as any other, the nursery waits for it, and the promise is completed on a worker.

// SendAsync begins to send v, and does not wait. The promise that it returns is resolved when v has been passed on, and
// rejected with the error that [Chan.Send] would have returned otherwise; then v is still the caller's.
//
// The send has its place among all sends when SendAsync returns, so values are received in the order of the calls. It
// is a child of n: a cancel of n ends it, and the Run that opened n waits for it. An error of the send rejects the
// promise, and does not fail n. The send does not count against [Nursery.Limit].
//
//go:noinline
func (c *Chan[T]) SendAsync(n *Nursery, v T) *Promise[struct{}] {
	op := new(struct {
		async[T]
		p Promise[struct{}]
	})
	op.cell.Value = v
	op.begin(n, c, sending, "Chan.SendAsync", coro.CallerPC(), func(context.Context) error {
		_, err := op.end()
		complete(&op.p, struct{}{}, err)
		return nil // the error is the promise's
	})
	return &op.p
}

// RecvAsync begins to receive a value, and does not wait. The promise that it returns is resolved with the value, and
// rejected with the error that [Chan.Recv] would have returned otherwise. A promise that is not looked at holds the
// value that it got: it is not given to another receiver.
//
// The receive has its place among all receives when RecvAsync returns. It is a child of n, as that of [Chan.SendAsync].
//
//go:noinline
func (c *Chan[T]) RecvAsync(n *Nursery) *Promise[T] {
	op := new(struct {
		async[T]
		p Promise[T]
	})
	op.begin(n, c, receiving, "Chan.RecvAsync", coro.CallerPC(), func(context.Context) error {
		v, err := op.end()
		complete(&op.p, v, err)
		return nil
	})
	return &op.p
}

// complete completes p with the result of an operation.
func complete[T any](p *Promise[T], v T, err error) {
	if err != nil {
		p.Reject(err)
	} else {
		p.Resolve(v)
	}
}

// async is an operation of a channel, with the fiber that completes it.
type async[T any] struct {
	f    Fiber
	c    *Chan[T]
	side channel.Side
	r    park.Reason // how the operation ended; None if the cell was published, then the fiber's wait tells
	cell wait.Cell[T]
}

// begin starts the fiber, which runs fn when the operation has ended, and does the operation in its name. A send has
// its value in the cell.
//
//go:norace
func (a *async[T]) begin(n *Nursery, c *Chan[T], side channel.Side, what string, pc uintptr, fn func(context.Context) error) {
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
	if by != nil {
		by.stepped()
	}
}

// do does the operation, or begins a wait for it. The fiber is armed only once the operation has to wait, under the
// channel's lock: a cancel must not end a wait whose value has been passed on.
//
// Guarded by TestExploreAsync.
//
// Spec: CH-52 (async operations return a ticket)
//
//go:norace
func (a *async[T]) do(near park.Place) {
	f, sc, ch := &a.f, &a.f.nursery.scope, &a.c.ch
	if sc.done() {
		ch.Fail(a.side, sc.failureReason(park.Cancelled))
		a.r = park.Cancelled
		f.task.Rouse(near)
		return
	}
	f.waitUnder(sc)
	var ready *park.Parker
	ch.Lock()
	if a.side == receiving {
		a.cell.Value, a.r, ready = ch.Take()
	} else {
		a.r, ready = ch.Put(a.cell.Value)
	}
	if a.r == park.None && a.side == sending && ch.Overflows() {
		a.overrun(near)
		return
	}
	if a.r != park.None {
		if a.r != park.Data {
			ch.Count(a.side, a.r)
		}
		a.c.core.unlock(ready, near)
		f.task.Rouse(near)
		return
	}
	t := f.task.ArmParked()
	if a.side == receiving {
		ch.PublishRecv(&a.cell, &f.task.Parker, t)
	} else {
		ch.PublishSend(&a.cell, a.cell.Value, &f.task.Parker, t)
	}
	a.c.core.unlock(nil, near)
	// From here on the fiber may run, and end, at any time.
	if sc.state.Load() == scopeCancelled { // a cancel that came before ArmParked has not found it
		f.task.Wake(t, park.Cancelled, near)
	}
}

// overrun ends a send to a channel that is full, by its overflow policy, and unlocks the channel. The handler of
// OnUndelivered comes last, because it may panic.
//
//go:norace
func (a *async[T]) overrun(near park.Place) {
	c := a.c
	lost, r := c.ch.Displace(a.cell.Value)
	c.ch.Unlock()
	a.r = r
	a.f.task.Rouse(near)
	if r == park.Data {
		c.undeliver(lost)
	}
}

// end returns how the operation has ended. The fiber calls it.
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
