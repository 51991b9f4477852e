package coir

import (
	"context"
	"sync"
	"time"
	"weak"

	"github.com/coir-go/coir/internal/clock"
	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/sched"
	"github.com/coir-go/coir/internal/wait"
)

// How a goroutine waits. Unlike a fiber, a goroutine has no parker and no cells of its own, so it borrows a guest.
//
// sendAny and recvAny serve goroutines like all other callers. sendGuest and recvGuest are the fast path for the most
// common case: a goroutine under context.Background or a similar context, on a channel that is neither watched nor
// timed. If the operation neither succeeds immediately nor can simply wait, they leave it to the slow path, which
// starts over. send calls sendGuest if the context is not that of a fiber. In a race build it does so for every caller,
// and in a simulation for fibers too. sendGuest passes these callers on to sendAny, because further checks in send
// would make the fast path of fibers longer. recv and recvGuest do the same. Without this fast path, the
// goroutines-both-ends comparison in bench/ratios takes 1.3 times as long.

// guest holds the parker and the cells that a goroutine waits with.
type guest struct {
	park.Guest
	kit   wait.Kit
	timer clock.Timer
	stay  stay // what snapshots show of the wait, with kit.On
}

var guests = sync.Pool{New: newGuest}

//go:norace
func newGuest() any {
	g := new(guest)
	g.Init(guestsMade.Add(1))
	waitingGuests.add(&weakNode[weakGuest]{x: weakGuest{weak.Make(g)}})
	return g
}

// isPlainGoroutine reports whether the caller is a goroutine, and its context never ends and is not one of coir's.
//
//go:norace
func isPlainGoroutine(ctx context.Context) bool {
	if _, sc := scopeOf(ctx); sc != nil || ctx.Done() != nil {
		return false
	}
	return sched.Current() == nil
}

// sendGuest implements send for a goroutine. chan.go explains the steps.
//
//go:norace
func (c *Chan[T]) sendGuest(ctx context.Context, v T, d time.Duration) error {
	if race.Enabled || d != forever || c.core.rt != nil || !isPlainGoroutine(ctx) {
		return c.sendAny(ctx, v, d)
	}
	// 1. Try.
	ch := &c.ch
	ch.Lock()
	if !ch.Plain() {
		ch.Unlock()
		return c.sendAny(ctx, v, d)
	}
	ch.UsedBy(sending, 0)
	r, ready := ch.Put(v)
	if r == park.Data {
		ch.Unlock()
		ready.MakeReady(nil)
		return nil
	}
	if r != park.None || ch.Overflows() {
		ch.Unlock()
		return c.sendAny(ctx, v, d)
	}
	// 2. Publish.
	g := guests.Get().(*guest)
	cell := wait.SoloCell[T](&g.kit, ch.Cells())
	cell.Value = v
	g.enter((*toSend)(&c.core))
	ch.Publish(sending, &cell.Node, &g.Parker, g.ArmParked())
	ch.Unlock()
	// 3. Park.
	g.stamp()
	g.Wait()
	// 4. Finish.
	var err error
	if r = g.Reason(); r == park.Data {
		ch.Took(cell)
	} else {
		ch.Finish(sending, cell, r)
		err = c.core.resultErr(sending, r)
	}
	wait.Done[T](&g.kit, ch.Cells())
	g.leave()
	return err
}

// recvGuest implements recv for a goroutine. chan.go explains the steps.
//
//go:norace
func (c *Chan[T]) recvGuest(ctx context.Context, d time.Duration) (T, error) {
	if race.Enabled || d != forever || c.core.rt != nil || !isPlainGoroutine(ctx) {
		return c.recvAny(ctx, d)
	}
	// 1. Try.
	ch := &c.ch
	ch.Lock()
	if !ch.Plain() {
		ch.Unlock()
		return c.recvAny(ctx, d)
	}
	ch.UsedBy(receiving, 0)
	v, r, ready := ch.Take()
	if r == park.Data {
		ch.Unlock()
		ready.MakeReady(nil)
		return v, nil
	}
	if r != park.None {
		ch.Unlock()
		return c.recvAny(ctx, d)
	}
	// 2. Publish.
	g := guests.Get().(*guest)
	cell := wait.SoloCell[T](&g.kit, ch.Cells())
	g.enter((*toRecv)(&c.core))
	ch.Publish(receiving, &cell.Node, &g.Parker, g.ArmParked())
	ch.Unlock()
	// 3. Park.
	g.stamp()
	g.Wait()
	// 4. Finish.
	var err error
	if r = g.Reason(); r == park.Data {
		v = ch.Took(cell)
	} else {
		ch.Finish(receiving, cell, r)
		err = c.core.resultErr(receiving, r)
	}
	wait.Done[T](&g.kit, ch.Cells())
	g.leave()
	return v, err
}
