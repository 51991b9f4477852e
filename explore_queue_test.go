//go:build coirinterleave

package coir

// The real code of Queue and Cond, in every order of its memory accesses.

import (
	"fmt"
	"testing"

	"github.com/coir-go/coir/internal/interleave"
)

// pot is a Resource: a number of things.
type pot struct{ left, size int }

func (p *pot) Take(n int) bool {
	if p.left < n {
		return false
	}
	p.left -= n
	return true
}

func (p *pot) Put(n int, _ bool) bool {
	if p.left+n > p.size {
		return false
	}
	p.left += n
	return true
}

var potVerb = &Verb{Name: "take", Waits: "to take", Ends: "put back"}

func (p *pot) Verb(int) *Verb { return potVerb }

// putBack puts back n that have been taken.
func putBack(q *Queue, p *pot, n int) {
	if !q.Put(p, n) {
		interleave.Failf("%d are put back that were not taken", n)
	}
}

// checkPot checks that everything has been given back, and that there are no waiters.
func checkPot(q *Queue, p *pot) {
	if p.left != p.size || !q.waiters.Empty() {
		interleave.Failf("%d of %d are left, %d wait", p.left, p.size, q.waiters.Len())
	}
}

// Fibers take and put back, while their nursery is cancelled. Every fiber returns what it took; at the end nothing is
// missing and no fiber waits: a waiter that leaves passes on what became free for it, and the waiters behind a large
// one that leaves are served.
func TestExploreTakeAgainstPut(t *testing.T) {
	for _, cancels := range []bool{false, true} {
		for _, amounts := range [][]int{{1, 1, 1}, {2, 2, 1}} {
			t.Run(fmt.Sprintf("cancel %v, %v", cancels, amounts), func(t *testing.T) {
				interleave.Check(t, interleave.Config{}, func() {
					s, q := newScene(), new(Queue)
					p := &pot{amounts[0], amounts[0]}
					for _, n := range amounts {
						b := s.fiber()
						interleave.Go("take", func() {
							if err := q.Take(b.here(), p, n); err == nil {
								putBack(q, p, n)
							} else if !cancels {
								interleave.Failf("ended with %v", err)
							}
						})
					}
					if cancels {
						interleave.Go("cancel", func() { s.n.Cancel(errStopped) })
					}
					interleave.JoinAll()
					checkPot(q, p)
				})
			})
		}
	}
}

// A waiter for two is first, one for one behind it, and one is left. The first is cancelled alone: the second must be
// served, whatever else happens.
func TestExploreLargeWaiterLeaves(t *testing.T) {
	interleave.Check(t, interleave.Config{}, func() {
		s, other, q := newScene(), newScene(), new(Queue)
		p := &pot{2, 2}
		holder, large, small := s.fiber(), s.fiber(), other.fiber()
		if err := q.Take(holder.here(), p, 1); err != nil {
			interleave.Failf("%v", err)
		}
		interleave.Go("large", func() {
			if err := q.Take(large.here(), p, 2); err == nil {
				putBack(q, p, 2)
			}
		})
		interleave.Go("small", func() {
			if err := q.Take(small.here(), p, 1); err != nil {
				interleave.Failf("ended with %v", err)
			}
			putBack(q, p, 1)
		})
		s.n.Cancel(errStopped)
		interleave.JoinAll()
		putBack(q, p, 1)
		checkPot(q, p)
	})
}

// A select takes, or receives, while another fiber puts back, and one sends, or the nursery is cancelled. If it did not
// take, nothing is missing. If nothing else ends it, it takes.
func TestExploreSelectTakes(t *testing.T) {
	for _, also := range []string{"nothing", "send", "cancel"} {
		t.Run(also, func(t *testing.T) {
			interleave.Check(t, interleave.Config{}, func() {
				s, q, c := newScene(), new(Queue), NewChan[int](1)
				p := &pot{1, 1}
				x, y := s.fiber(), s.fiber()
				if err := q.Take(y.here(), p, 1); err != nil {
					interleave.Failf("%v", err)
				}
				interleave.Go("select", func() {
					var v int
					i, err := selects(x, fairly, q.TakeCase(p, 1), c.RecvCase(&v))
					switch {
					case i == 0:
						putBack(q, p, 1)
					case i < 0 && also != "cancel":
						interleave.Failf("ended with %v", err)
					}
				})
				interleave.Go("put", func() { putBack(q, p, 1) })
				switch also {
				case "send":
					interleave.Go("send", func() { _ = c.TrySend(1) })
				case "cancel":
					interleave.Go("cancel", func() { s.n.Cancel(errStopped) })
				}
				interleave.JoinAll()
				checkPot(q, p)
				if c.ch.Waits() {
					interleave.Failf("the select is still in a queue")
				}
			})
		})
	}
}

// Two fibers take an item each, by Wait or in a select, from a list that two others fill. None misses its signal.
func TestExploreWaitAgainstSignal(t *testing.T) {
	for _, by := range []string{"wait", "select"} {
		t.Run(by, func(t *testing.T) {
			interleave.Check(t, interleave.Config{}, func() {
				s, c, items := newScene(), new(Cond), 0
				for i := range 2 {
					b := s.fiber()
					interleave.Go("take", func() {
						c.Lock()
						for items == 0 {
							if i == 0 || by == "wait" {
								if err := c.Wait(b.here()); err != nil {
									interleave.Failf("ended with %v", err)
								}
								continue
							}
							signal := c.WaitCase()
							c.Unlock()
							if i, err := selects(b, fairly, signal); i != 0 {
								interleave.Failf("ended with %d, %v", i, err)
							}
							c.Lock()
						}
						items--
						c.Unlock()
					})
				}
				put := func() {
					c.Lock()
					items++
					c.Signal()
					c.Unlock()
				}
				interleave.Go("put", put)
				put()
				interleave.JoinAll()
				if items != 0 || !c.waiters.Empty() || !c.woken.Empty() {
					interleave.Failf("%d items are left, %d wait", items, c.waiters.Len())
				}
			})
		})
	}
}

// Two fibers wait; there is a signal, and a cancellation. As many waits end without an error as calls of Signal
// returned true.
func TestExploreSignalAgainstCancel(t *testing.T) {
	interleave.Check(t, interleave.Config{}, func() {
		s, c := newScene(), new(Cond)
		signalled, ended := 0, 0
		for range 2 {
			b := s.fiber()
			interleave.Go("wait", func() {
				c.Lock()
				if c.Wait(b.here()) == nil {
					ended++
				}
				c.Unlock()
			})
		}
		interleave.Go("cancel", func() { s.n.Cancel(errStopped) })
		c.Lock()
		if c.Signal() {
			signalled++
		}
		c.Unlock()
		interleave.JoinAll()
		if signalled != ended || !c.waiters.Empty() || !c.woken.Empty() {
			interleave.Failf("%d signals, %d waits ended by one", signalled, ended)
		}
	})
}

// A select takes two or one, while both are taken and one is put back: it takes the one, also if another fiber waits.
func TestExploreSelectTakesEither(t *testing.T) {
	for _, other := range []bool{false, true} {
		t.Run(fmt.Sprintf("other %v", other), func(t *testing.T) {
			interleave.Check(t, interleave.Config{}, func() {
				s, q := newScene(), new(Queue)
				p := &pot{left: 2, size: 2}
				x, y, z := s.fiber(), s.fiber(), s.fiber()
				if err := q.Take(y.here(), p, 2); err != nil {
					interleave.Failf("%v", err)
				}
				interleave.Go("select", func() {
					i, err := selects(x, fairly, q.TakeCase(p, 2), q.TakeCase(p, 1))
					if err != nil {
						interleave.Failf("ended with %v", err)
					}
					q.Put(p, 2-i)
				})
				if other {
					interleave.Go("take", func() {
						if err := q.Take(z.here(), p, 1); err != nil {
							interleave.Failf("ended with %v", err)
						}
						q.Put(p, 1)
					})
				}
				q.Put(p, 1)
				interleave.JoinAll()
				q.Put(p, 1)
				checkPot(q, p)
			})
		})
	}
}
