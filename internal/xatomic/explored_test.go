//go:build coirinterleave

package xatomic

// Operations do what they announce, both in explorations and outside them.

import (
	"sync"
	"testing"

	"github.com/coir-go/coir/internal/interleave"
)

// Two threads wait for a condition and two signal it. In every order, even if both signals come before either waiter
// runs, both waiters continue.
func TestExploreCond(t *testing.T) {
	for _, cfg := range []interleave.Config{{}, {Bound: 3}} {
		interleave.Check(t, cfg, func() {
			var mu Mutex
			cond := Cond{L: &mu}
			turns := 0
			for range 2 {
				interleave.Go("waiter", func() {
					mu.Lock()
					for turns == 0 {
						cond.Wait()
					}
					turns--
					mu.Unlock()
				})
				interleave.Go("signaller", func() {
					mu.Lock()
					turns++
					mu.Unlock()
					cond.Signal()
				})
			}
			interleave.JoinAll()
			if turns != 0 {
				interleave.Failf("%d turns are left", turns)
			}
		})
	}
}

func TestExploreSemaAndGate(t *testing.T) {
	interleave.Check(t, interleave.Config{}, func() {
		s, g := NewSema(), NewGate()
		n := 0
		for range 2 {
			interleave.Go("through", func() {
				g.Wait()
				g.Wait()
			})
		}
		Go(func() {
			s.Wait()
			n++
			g.Open()
		})
		s.Post()
		interleave.JoinAll()
		if n != 1 {
			interleave.Failf("%d", n)
		}
	})
}

func TestOutsideOfExplorations(t *testing.T) {
	s, g := NewSema(), NewGate()
	var all sync.WaitGroup
	all.Go(func() {
		s.Post()
		s.Post()
	})
	all.Go(func() {
		s.Wait()
		<-s.C()
		g.Open()
	})
	g.Wait()
	if s.Unmade() || !(Sema{}).Unmade() {
		t.Error("Unmade does not tell what NewSema has made")
	}
	all.Wait()
	if Go(func() {}) {
		t.Error("a thread was started, and there is no exploration")
	}
}
