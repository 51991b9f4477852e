package park

import (
	"github.com/coir-go/coir/internal/bubble"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/xatomic"
)

// Guest lets a plain goroutine wait as fibers do: the same word, but to be readied releases a one-place semaphore.
//
// Guests may be used again by other goroutines, one after the other. Tickets do not restart, so a waker that kept one
// from an earlier wait finds it stale.
//
// A guest keeps no channel between waits: in a bubble of testing/synctest a channel belongs to the bubble that it was
// made in, and the next to use the guest may be outside. A goroutine that waits in a bubble cannot be woken from
// elsewhere, by a channel or otherwise, so the guest notes where it waits, and its waker looks.
type Guest struct {
	Parker
	mu    xatomic.Mutex
	cond  xatomic.Cond
	ready bool
	home  bubble.ID     // where the goroutine waits
	sema  chan struct{} // instead of them, in a wait that a channel may cancel
}

// Init readies the guest for its first use.
//
//go:norace
func (g *Guest) Init() {
	g.cond.L = &g.mu
	g.Parker.Init(g)
}

// Ready implements Owner.
//
//go:norace
func (g *Guest) Ready(*Parker, Place) {
	if g.home != 0 && bubble.Abroad(g.home) {
		race.Enable() // as the waker's operation would have: the panic may be recovered
		panic("coir: a goroutine that waits " + g.home.String() + " was woken by one that runs " +
			bubble.Here().String() + ", which Go does not allow: make the channel, and what uses it, inside the bubble")
	}
	if g.sema != nil {
		g.sema <- struct{}{}
		return
	}
	g.mu.Lock()
	g.ready = true
	g.mu.Unlock()
	g.cond.Signal()
}

// Late implements Owner. Nobody counts for guests.
//
//go:norace
func (g *Guest) Late(*Parker) {}

// Park blocks the goroutine until its armed wait has ended, or cancel is closed: then it tries to end the wait itself,
// for Cancelled. A nil cancel never comes.
//
// A goroutine blocks on its own stack, so it may commit itself: there is no switch to wait for.
//
//go:norace
func (g *Guest) Park(cancel <-chan struct{}) Reason {
	// Spec: PK-38 (guests use the same word)
	g.home = bubble.Here()
	g.sema = nil
	if cancel != nil {
		g.sema = make(chan struct{}, 1)
	}
	if g.Commit() {
		if cancel == nil {
			g.mu.Lock()
			for !g.ready {
				g.cond.Wait()
			}
			g.ready = false
			g.mu.Unlock()
		} else {
			select {
			case <-g.sema:
			case <-cancel:
				t, _ := g.Waiting()
				g.Wake(t, Cancelled, nil)
				<-g.sema // ours, or the winner's
			}
		}
	}
	return g.Reason()
}
