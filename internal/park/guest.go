package park

import (
	"github.com/coir-go/coir/internal/bubble"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/xatomic"
)

// Guest lets a plain goroutine wait as fibers do. It has the same word, but Ready posts a semaphore of one place. The
// semaphore is a Go channel, the cheapest measured way to block a goroutine (docs/design/0007).
//
// Guests may be used by several goroutines, one after the other. Their tickets do not begin again with each goroutine,
// so a waker that has kept the ticket of an earlier wait finds it stale.
//
// A channel that is made in a bubble of testing/synctest belongs to the bubble, and the next user of the guest may be
// outside. So a wait in a bubble has a semaphore of its own, and a guest keeps only one that was made outside. A
// goroutine that waits in a bubble cannot be woken from outside, so the guest records the bubble, and its waker checks
// it.
type Guest struct {
	Parker
	home bubble.ID    // the bubble in which the goroutine waits
	sema xatomic.Sema // posted once for each wait that was committed to and has been claimed
}

// Init prepares the guest for its first use. n is the number of the guest. The tickets of each guest begin at another
// number, far from those of other guests. So the ticket alone tells waits of different guests apart, unless one of them
// waits very often.
//
//go:norace
func (g *Guest) Init(n uint64) {
	g.Parker.Init(g)
	xatomic.Preset(&g.word, word(Ticket(n*(0x9E3779B97F4A7C15>>low)&(1<<ticketBits-1)), None, Running))
}

// Home returns the bubble in which the goroutine waits. It may be called by others while the goroutine has parked.
//
//go:norace
func (g *Guest) Home() bubble.ID { return g.home }

// Ready implements Owner.
//
//go:norace
func (g *Guest) Ready(*Parker, Place) {
	if g.home != 0 {
		g.checkHome()
	}
	g.sema.Post()
}

// checkHome panics if the waker is not in the bubble where the goroutine waits.
//
//go:noinline
//go:norace
func (g *Guest) checkHome() {
	if bubble.Outside(g.home) {
		race.Enable() // as the waker's operation would have: the panic may be recovered
		panic("coir: a goroutine that waits " + g.home.String() + " was woken by one that runs " +
			bubble.Here().String() + ", which Go does not allow: make the channel, and what uses it, inside the bubble")
	}
}

// Late implements Owner. Late wakes of guests are not counted.
//
//go:norace
func (g *Guest) Late(*Parker) {}

// Park blocks the goroutine until its armed wait has ended. If cancel is closed first, Park tries to end the wait
// itself, with reason Cancelled. A nil cancel is never closed.
//
// A goroutine blocks on its own stack, so it may call Commit itself: there is no switch to wait for.
//
//go:norace
func (g *Guest) Park(cancel <-chan struct{}) Reason {
	// Spec: PK-38 (guests use the same word)
	g.settle()
	switch {
	case !g.Commit():
	case cancel == nil:
		g.Wait()
	default:
		select {
		case <-g.sema.C():
		case <-cancel:
			t, _ := g.Waiting()
			g.Wake(t, Cancelled, nil)
			g.Wait() // for the token of the winner, which may be this goroutine
		}
	}
	return g.Reason()
}

// ArmParked is Arm and Commit in one. It is called before the wait is published. If a waker comes before the goroutine
// blocks, the semaphore keeps its token. Such a wait cannot be disarmed. Its goroutine then calls Wait, not Park.
//
//go:norace
func (g *Guest) ArmParked() Ticket {
	// Spec: PK-05 (each arm takes a fresh ticket)
	// Spec: PK-38 (guests use the same word)
	g.settle()
	return g.Parker.ArmParked()
}

// Wait blocks the goroutine until its wait, which has been committed to, has ended.
//
//go:norace
func (g *Guest) Wait() { g.sema.Wait() }

// settle records the bubble of the goroutine, and makes a semaphore if that of the last wait cannot be used.
//
//go:norace
func (g *Guest) settle() {
	if bubble.Possible || g.sema.Unmade() {
		g.settleAnew()
	}
}

//go:noinline
//go:norace
func (g *Guest) settleAnew() {
	home := bubble.Here()
	if g.sema.Unmade() || g.home != 0 || home != 0 {
		g.home, g.sema = home, xatomic.NewSema()
	}
}
