//go:build coirinterleave

package park

// The word of the real code, through every order of its accesses.

import (
	"testing"

	"github.com/coir-go/coir/internal/interleave"
	"github.com/coir-go/coir/internal/xatomic"
)

// sleeper waits on its own thread. As with a fiber, another thread commits for it once its stack is quiet, and does not
// know whether the sleeper already runs again.
type sleeper struct {
	Parker
	turn      xatomic.Sema   // it has been readied
	left      xatomic.Sema   // its stack is quiet
	published xatomic.Uint64 // the ticket of the wait that wakers may end
	cancelled xatomic.Bool
	quiet     bool
	won       [4]int // wakes of each ticket that won
	reason    [4]Reason
}

func newSleeper() *sleeper {
	s := &sleeper{turn: xatomic.NewSema(), left: xatomic.NewSema()}
	s.Init(s)
	interleave.Go("worker", func() {
		for s.left.Wait(); s.quiet; s.left.Wait() {
			if !s.Commit() {
				s.MakeReady(nil)
			}
		}
	})
	return s
}

func (s *sleeper) Ready(*Parker, Place) {
	if !s.quiet {
		interleave.Failf("readied while it runs")
	}
	s.turn.Post()
}

func (s *sleeper) Late(*Parker) {}

// wait waits once, as an operation does. If scoped is set, it waits under a scope that can be cancelled. If armed is
// not nil, wait posts it when the wait is published.
func (s *sleeper) wait(scoped bool, armed *xatomic.Sema) {
	t := s.Arm()
	s.published.Store(uint64(t))
	if armed != nil {
		armed.Post()
	}
	if scoped && s.cancelled.Load() && s.Disarm() {
		s.won[t]++
		s.reason[t] = Cancelled
		return
	}
	s.quiet = true
	s.left.Post()
	s.turn.Wait()
	s.quiet = false
	if r := s.Reason(); s.won[t] != 1 || s.reason[t] != r {
		interleave.Failf("wait %d ended for reason %d; %d wakes have won, the last for %d", t, r, s.won[t], s.reason[t])
	}
}

// wake ends the published wait, if there is one.
func (s *sleeper) wake(r Reason) {
	t := Ticket(s.published.Load())
	if t == 0 {
		return
	}
	s.end(t, r)
}

func (s *sleeper) end(t Ticket, r Reason) {
	switch o := s.Claim(t, r); o {
	case Asleep:
		s.won[t]++
		s.reason[t] = r
		s.MakeReady(nil)
	case Won:
		s.won[t]++
		s.reason[t] = r
	case Lost, Stale:
		if s.won[t] == 0 {
			interleave.Failf("a wake of wait %d is told %v, and no other wake has ended it", t, o)
		}
	}
}

// cancel cancels without a registration: it sets the flag and then looks at the word.
func (s *sleeper) cancel() {
	s.cancelled.Store(true)
	if t, ok := s.Waiting(); ok {
		s.end(t, Cancelled)
	}
}

// Two wakers and a canceller against one wait. The canceller always runs, so the wait always ends.
//
// Spec: PK-10 (exactly one ends a wait)
// Spec: PK-12 (the winner's reason carries kind and index)
// Spec: PK-14 (a wake between arm and commit is not lost)
func TestExploreParkAgainstWakersAndCancel(t *testing.T) {
	interleave.Check(t, interleave.Config{}, func() {
		s := newSleeper()
		interleave.Go("parker", func() {
			s.wait(true, nil)
			s.left.Post()
		})
		interleave.Go("data", func() { s.wake(Data) })
		interleave.Go("close", func() { s.wake(Closed) })
		interleave.Go("cancel", s.cancel)
		interleave.JoinAll()
		if s.won[1] != 1 {
			interleave.Failf("%d have won", s.won[1])
		}
	})
}

// Wakers that are late for the first wait meet the second, which another waker ends.
//
// Spec: PK-09 (checking the ticket and changing the state is one step)
// Spec: PK-11 (a wake reports whether it won)
// Spec: PK-29 (no spurious returns)
func TestExploreLateWakersAgainstTheNextWait(t *testing.T) {
	interleave.Check(t, interleave.Config{}, func() {
		s := newSleeper()
		second := xatomic.NewSema()
		interleave.Go("parker", func() {
			s.wait(true, nil)
			s.wait(false, &second)
			s.left.Post()
		})
		interleave.Go("data", func() { s.wake(Data) })
		interleave.Go("cancel", s.cancel)
		interleave.Go("next", func() {
			second.Wait()
			s.wake(TimedOut)
		})
		interleave.JoinAll()
	})
}

// There is one waker for each wait, so no waker can lose: each wait is ended by its own waker.
//
// Spec: PK-14 (a wake between arm and commit is not lost)
// Spec: PK-15 (the winner of a PARKED wait enqueues it once)
// Spec: PK-18 (commit and wake never enqueue twice)
func TestExploreOneWakerAWait(t *testing.T) {
	interleave.Check(t, interleave.Config{}, func() {
		s := newSleeper()
		armed := [3]xatomic.Sema{1: xatomic.NewSema(), 2: xatomic.NewSema()}
		interleave.Go("parker", func() {
			s.wait(false, &armed[1])
			s.wait(false, &armed[2])
			s.left.Post()
		})
		for i := range Ticket(2) {
			interleave.Go("waker", func() {
				armed[1+i].Wait()
				s.end(1+i, Data)
			})
		}
		interleave.JoinAll()
	})
}

// A guest commits on its own stack and waits for a token; wakers of its first wait may come in its second.
//
// Spec: PK-38 (guests use the same word)
func TestExploreGuest(t *testing.T) {
	for _, cfg := range []interleave.Config{{}, {Bound: 2}} {
		interleave.Check(t, cfg, func() {
			guestWaits((*Guest).Arm, func(g *Guest) Reason { return g.Park(nil) })
		})
	}
}

// The same for a guest that is parked from the start of its wait.
//
// Spec: PK-38 (guests use the same word)
func TestExploreGuestArmedParked(t *testing.T) {
	for _, cfg := range []interleave.Config{{}, {Bound: 2}} {
		interleave.Check(t, cfg, func() {
			guestWaits((*Guest).ArmParked, func(g *Guest) Reason {
				g.Wait()
				return g.Reason()
			})
		})
	}
}

func guestWaits(arm func(*Guest) Ticket, park func(*Guest) Reason) {
	g := new(Guest)
	g.Init(0)
	var won [3]int
	end := func(t Ticket, r Reason) {
		if g.Wake(t, r, nil) == Won {
			won[t]++
		}
	}
	var published xatomic.Uint64
	armed := [3]xatomic.Sema{1: xatomic.NewSema(), 2: xatomic.NewSema()}
	interleave.Go("guest", func() {
		for range 2 {
			t := arm(g)
			published.Store(uint64(t))
			armed[t].Post()
			if park(g) == None {
				interleave.Failf("wait %d ended for nothing", t)
			}
		}
	})
	interleave.Go("first", func() {
		armed[1].Wait()
		end(1, Data)
	})
	interleave.Go("second", func() {
		armed[2].Wait()
		end(2, Data)
	})
	interleave.Go("late", func() {
		if t := published.Load(); t != 0 {
			end(Ticket(t), Closed)
		}
	})
	interleave.JoinAll()
	if won[1] != 1 || won[2] != 1 {
		interleave.Failf("the waits were won %d and %d times", won[1], won[2])
	}
}
