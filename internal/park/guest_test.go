package park

// Guests are goroutines that wait as fibers do. A wait blocks the goroutine until exactly one waker (or canceller) has
// ended it, and a guest that is used again never mistakes an old waker for a new one.

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

func newGuest() *Guest {
	g := new(Guest)
	g.Init(0)
	return g
}

// empty: a token that is left over would end the next wait before its time.
func empty(t *testing.T, g *Guest) {
	t.Helper()
	if len(g.sema.C()) != 0 {
		t.Fatal("a token was left in the semaphore")
	}
}

// Spec: PK-22 (a wait that has ended costs no switch)
func TestGuestWokenBeforeItParks(t *testing.T) {
	g := newGuest()
	ticket := g.Arm()
	if o := g.Wake(ticket, Data, nil); o != Won {
		t.Fatal(o)
	}
	if r := g.Park(nil); r != Data {
		t.Fatal(r)
	}
	empty(t, g)
}

// Spec: FB-20 (an operation blocks a goroutine as one)
// Spec: PK-38 (guests use the same word)
func TestGuestBlocksUntilItIsWoken(t *testing.T) {
	g := newGuest()
	ticket := g.Arm()
	returned := make(chan Reason, 1)
	go func() { returned <- g.Park(nil) }()
	for g.State() != Parked { // the goroutine is on its way
		runtime.Gosched()
	}
	select {
	case r := <-returned:
		t.Fatalf("returned for %d before anybody woke it", r)
	default:
	}
	if o := g.Wake(ticket, TimedOut, nil); o != Won {
		t.Fatal(o)
	}
	if r := <-returned; r != TimedOut {
		t.Fatal(r)
	}
	empty(t, g)
}

// A guest that is parked from the start of its wait is woken before it blocks, and after.
//
// Spec: PK-38 (guests use the same word)
func TestGuestArmedParked(t *testing.T) {
	g := newGuest()
	for i := range 2 {
		ticket := g.ArmParked()
		if g.Disarm() {
			t.Fatal("a wait was disarmed whose wakers post a token")
		}
		returned := make(chan Reason, 1)
		wait := func() {
			g.Wait()
			returned <- g.Reason()
		}
		if i == 0 {
			go wait()
		}
		if o := g.Wake(ticket, Closed, nil); o != Won {
			t.Fatal(o)
		}
		if o := g.Wake(ticket, Data, nil); o != Lost {
			t.Fatal(o)
		}
		if i == 1 {
			wait()
		}
		if r := <-returned; r != Closed {
			t.Fatal(r)
		}
		empty(t, g)
	}
}

func TestGuestCancelled(t *testing.T) {
	cancel := make(chan struct{})
	close(cancel)
	g := newGuest()
	g.Arm()
	if r := g.Park(cancel); r != Cancelled {
		t.Fatal(r)
	}
	empty(t, g)

	// The wake came first and has ended the wait, so the cancellation has no effect.
	ticket := g.Arm()
	g.Wake(ticket, Data, nil)
	if r := g.Park(cancel); r != Data {
		t.Fatal(r)
	}
	empty(t, g)
}

// A guest is cancelled while others wake it. There is one outcome, and the guest's reason is the winner's.
//
// Spec: PK-10 (exactly one ends a wait)
// Spec: PK-38 (guests use the same word)
func TestGuestOneWinner(t *testing.T) {
	const wakers = 3
	rounds := 5000
	if testing.Short() {
		rounds = 1000
	}
	g := newGuest()
	var reasons [TimedOut + 1]int
	for i := range rounds {
		ticket := g.Arm()
		cancel := make(chan struct{})
		var won, by atomic.Int64
		var all sync.WaitGroup
		for range wakers {
			all.Go(func() {
				if g.Wake(ticket, Data, nil) == Won {
					won.Add(1)
				}
			})
		}
		all.Go(func() {
			if g.Wake(ticket, TimedOut, nil) == Won {
				won.Add(1)
				by.Store(1)
			}
		})
		if i%2 == 0 {
			close(cancel)
		}
		r := g.Park(cancel)
		all.Wait()
		switch {
		case r == Cancelled && won.Load() == 0 && i%2 == 0:
		case r == TimedOut && won.Load() == 1 && by.Load() == 1:
		case r == Data && won.Load() == 1 && by.Load() == 0:
		default:
			t.Fatalf("round %d: reason %d, %d wakers won, by timer: %d", i, r, won.Load(), by.Load())
		}
		reasons[r]++
		empty(t, g)
	}
	t.Logf("data %d, cancelled %d, timed out %d", reasons[Data], reasons[Cancelled], reasons[TimedOut])
}

// A guest serves one goroutine after the other. A waker with the ticket of an earlier wait is stale.
//
// Spec: PK-06 (tickets only grow)
// Spec: PK-08 (a stale wake changes nothing)
// Spec: PK-41 (an old reference to a waiter node is harmless)
func TestGuestIsUsedAgain(t *testing.T) {
	const users = 1000
	g := newGuest()
	var old []Ticket
	for i := range users {
		var ticket Ticket
		armed, parked := make(chan struct{}), make(chan Reason)
		go func() {
			ticket = g.Arm()
			close(armed)
			parked <- g.Park(nil)
		}()
		<-armed
		for _, o := range old[max(0, len(old)-10):] {
			if o >= ticket {
				t.Fatalf("user %d has ticket %d; an earlier one had %d", i, ticket, o)
			}
			if out := g.Wake(o, Cancelled, nil); out != Stale {
				t.Fatalf("a wake with an old ticket: %v", out)
			}
		}
		if out := g.Wake(ticket, Data, nil); out != Won {
			t.Fatal(out)
		}
		if r := <-parked; r != Data {
			t.Fatalf("user %d was woken for %d", i, r)
		}
		empty(t, g)
		old = append(old, ticket)
	}
}
