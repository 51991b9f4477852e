package coir_test

// How an operation on a channel ends: by data, a timeout, a cancellation or a close. Exactly one of them ends a wait,
// the value is accounted for, and no part of the wait is left in the channel. The tests run over the table of
// conform_test.go. chan_close_test.go has the tests of Close and Abort, chan_errors_test.go those of the errors, and
// chan_cost_test.go those of scheduling, allocation and memory.

import (
	"context"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
)

// A deadline ends a wait with ErrTimeout, not early. Nothing of the wait is left when the operation returns, and the
// value is still the sender's.
//
// Spec: CH-23 (a deadline ends a wait with ErrTimeout)
// Spec: CH-26 (a failed send keeps its value)
// Spec: CH-28 (an ended wait is unlinked before it returns)
// Spec: CH-56 (a cancelled wait takes no value and no place)
// Spec: TM-12 (an ended wait stops its timer)
// Spec: BU-02 (a failed send keeps its buffer)
func TestTimeout(t *testing.T) {
	const d = 2 * time.Millisecond
	late := func(ctx context.Context, a *player, op func(context.Context) error) {
		begun := a.s.now()
		a.err = op(ctx)
		if took := a.s.now() - begun; took < d {
			a.err = fmt.Errorf("%v after %v", a.err, took) // and so no longer the expected error
		}
	}
	wants := func(s *stage, a *player, counts func() coir.SideStats) {
		s.t.Helper()
		err := a.ended()
		if !errors.Is(err, coir.ErrTimeout) || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			s.t.Fatalf("returned %v, want ErrTimeout after %v", err, d)
		}
		if a.waiting != 0 {
			s.t.Fatal("after the return, the operation is still queued")
		}
		if st := counts(); st != (coir.SideStats{TimedOut: 1}) {
			s.t.Fatalf("counted as %+v, want %+v", st, coir.SideStats{TimedOut: 1})
		}
	}
	t.Run("send", func(t *testing.T) {
		claim(t, sendersWait, func(s *stage) {
			held := s.fill()
			a := s.start(s.sender, func(ctx context.Context, a *player) {
				late(ctx, a, func(ctx context.Context) error { return s.c.SendTimeout(ctx, 100, d) })
				a.waiting = s.c.Stats().Send.Waiting
			})
			wants(s, a, func() coir.SideStats { return s.c.Stats().Send })
			s.drain(held, coir.ErrWouldBlock)
			s.loses()
		})
	})
	t.Run("receive", func(t *testing.T) {
		claim(t, everyRow, func(s *stage) {
			a := s.start(s.receiver, func(ctx context.Context, a *player) {
				late(ctx, a, func(ctx context.Context) (err error) { a.v, err = s.c.RecvTimeout(ctx, d); return err })
				a.waiting = s.c.Stats().Recv.Waiting
			})
			wants(s, a, func() coir.SideStats { return s.c.Stats().Recv })
			held := s.fill() // all of it can still be received
			s.drain(held, coir.ErrWouldBlock)
		})
	})
	t.Run("of the context", func(t *testing.T) {
		claim(t, everyRow, func(s *stage) {
			a := s.start(s.receiver, func(ctx context.Context, a *player) {
				with := context.WithTimeout
				if s.receiver == scopedFiber || s.sim != nil {
					with = coir.WithTimeout
				}
				late(ctx, a, func(ctx context.Context) (err error) {
					ctx, cancel := with(ctx, d)
					defer cancel()
					a.v, err = s.c.Recv(ctx)
					return err
				})
				a.waiting = s.c.Stats().Recv.Waiting
			})
			wants(s, a, func() coir.SideStats { return s.c.Stats().Recv })
		})
	})
}

// With a time limit of 0 an operation does what it can do immediately. With the largest limit it waits.
//
// Spec: CH-23 (a deadline ends a wait with ErrTimeout)
func TestTimeoutsOfNoneAndOfAllTime(t *testing.T) {
	claim(t, everyRow, func(s *stage) {
		for _, d := range []time.Duration{0, -1, math.MinInt64} {
			a := s.start(s.receiver, func(ctx context.Context, a *player) { _, a.err = s.c.RecvTimeout(ctx, d) })
			s.allEnded([]*player{a}, coir.ErrTimeout)
			held := s.fill()
			if s.waits() {
				a := s.start(s.sender, func(ctx context.Context, a *player) { a.err = s.c.SendTimeout(ctx, 100, d) })
				s.allEnded([]*player{a}, coir.ErrTimeout)
			}
			for i := range held {
				a := s.start(s.receiver, func(ctx context.Context, a *player) { a.v, a.err = s.c.RecvTimeout(ctx, d) })
				s.allEnded([]*player{a}, nil)
				if a.v != held[i] {
					s.t.Fatalf("received %d, want %d", a.v, held[i])
				}
			}
		}
		r := s.start(s.receiver, func(ctx context.Context, a *player) { a.v, a.err = s.c.RecvTimeout(ctx, math.MaxInt64) })
		s.until("the receiver waits", func() bool { return s.c.Stats().Recv.Waiting == 1 })
		w := s.start(s.sender, func(ctx context.Context, a *player) { a.err = s.c.SendTimeout(ctx, 7, math.MaxInt64) })
		s.allEnded([]*player{r, w}, nil)
		if r.v != 7 {
			s.t.Fatalf("received %d, want 7", r.v)
		}
	})
}

// A cancellation ends a wait with an error that is context.Canceled and shows the cause. Nothing of the wait is left
// when the operation returns, the waiters behind it keep their order, and the value is still the sender's.
//
// Spec: CH-04 (rendezvous hands over directly)
// Spec: CH-19 (waiters are served in order)
// Spec: CH-24 (a cancelled wait tells the cause)
// Spec: CH-26 (a failed send keeps its value)
// Spec: CH-28 (an ended wait is unlinked before it returns)
// Spec: CH-56 (a cancelled wait takes no value and no place)
func TestCancelEndsAWait(t *testing.T) {
	wants := func(s *stage, a *player, waiting int) {
		s.t.Helper()
		if err := a.ended(); !isCancelFor(err, errWhy) {
			s.t.Fatalf("returned %v, want context.Canceled that shows the cause", err)
		}
		if a.waiting != waiting {
			s.t.Fatalf("%d wait when the operation returns, want %d", a.waiting, waiting)
		}
	}
	order := []int{2, 0, 4} // in the middle, first, last
	t.Run("send", func(t *testing.T) {
		claim(t, sendersWait, func(s *stage) {
			held := s.fill()
			line := s.sendersInLine(5, 100)
			for i, k := range order {
				line[k].cancel(errWhy)
				wants(s, line[k], 4-i)
			}
			s.drain(append(held, 101, 103), coir.ErrWouldBlock)
			s.allEnded([]*player{line[1], line[3]}, nil)
			s.loses()
			if st := s.c.Stats(); st.Send != (coir.SideStats{Cancelled: 3}) {
				s.t.Fatalf("counted as %+v, want %+v", st.Send, coir.SideStats{Cancelled: 3})
			}
		})
	})
	t.Run("receive", func(t *testing.T) {
		claim(t, everyRow, func(s *stage) {
			line := s.receiversInLine(5)
			for i, k := range order {
				line[k].cancel(errWhy)
				wants(s, line[k], 4-i)
			}
			s.allEnded([]*player{s.send(s.c, 101)}, nil)
			s.allEnded([]*player{s.send(s.c, 103)}, nil)
			s.allEnded([]*player{line[1], line[3]}, nil)
			if line[1].v != 101 || line[3].v != 103 {
				s.t.Fatalf("those who stayed got %d and %d", line[1].v, line[3].v)
			}
			if st := s.c.Stats(); st.Recv != (coir.SideStats{Cancelled: 3}) {
				s.t.Fatalf("counted as %+v, want %+v", st.Recv, coir.SideStats{Cancelled: 3})
			}
		})
	})
}

// A cancellation without a cause has the cause context.Canceled.
//
// Spec: CH-24 (a cancelled wait tells the cause)
func TestCancelWithoutACause(t *testing.T) {
	claim(t, everyRow, func(s *stage) {
		a := s.receiversInLine(1)[0]
		a.cancel(nil)
		s.allEnded([]*player{a}, context.Canceled)
	})
}

// An operation in a context that is done never waits, and does not begin: it has no effect even if it need not have
// waited.
//
// Spec: CH-57 (a cancelled context never waits)
func TestContextThatIsOver(t *testing.T) {
	claim(t, everyRow, func(s *stage) {
		held := s.fill()
		before := s.c.Stats()
		full := s.start(s.sender, func(ctx context.Context, a *player) {
			a.cancel(errWhy)
			_, many := s.c.SendMany(ctx, []int{100, 101})
			a.err = all(cancelFor{errWhy}, s.c.Send(ctx, 100), s.c.SendTimeout(ctx, 100, time.Hour), s.c.SendTimeout(ctx, 100, 0), many)
		})
		s.allEnded([]*player{full}, nil)
		holds := s.start(s.receiver, func(ctx context.Context, a *player) {
			a.cancel(errWhy)
			_, plain := s.c.Recv(ctx)
			_, timed := s.c.RecvTimeout(ctx, time.Hour)
			_, now := s.c.RecvTimeout(ctx, 0)
			_, many := s.c.RecvMany(ctx, make([]int, 3))
			_, batch := s.c.RecvBatch(ctx, make([]int, 3), time.Hour)
			a.err = all(cancelFor{errWhy}, plain, timed, now, many, batch)
			for v, err := range s.c.All(ctx) {
				if err != nil {
					return
				}
				a.err = fmt.Errorf("All gave %d", v)
			}
		})
		s.allEnded([]*player{holds}, nil)
		before.Send.Cancelled += 4
		before.Recv.Cancelled += 6
		if st := s.c.Stats(); st != before {
			s.t.Fatalf("made %+v of %+v", st, before)
		}
		s.drain(held, coir.ErrWouldBlock)
		s.loses()
	})
}

// all returns an error unless every error is the expected one.
func all(want error, errs ...error) error {
	for i, err := range errs {
		if !isWanted(err, want) {
			return fmt.Errorf("operation %d returned %v, want %w", i, err, want)
		}
	}
	return nil
}

// Data, a close, a cancellation and a deadline race for one wait. One wins, and the results of both sides agree: a send
// that succeeded is a value that was received or handed over, and a send that failed is not.
//
// Spec: CH-25 (one of data, close, cancel and timeout wins)
// Spec: CH-26 (a failed send keeps its value)
// Spec: CH-40 (no value is lost silently)
// Spec: CH-56 (a cancelled wait takes no value and no place)
func TestOneEndOfEachWait(t *testing.T) {
	rounds := sized(10, 60, 5_000)
	claim(t, everyRow, func(s *stage) {
		ends := make(map[string]int)
		for r := range s.atMost(rounds) {
			s.c = s.channel()
			s.players = s.players[:0]
			limit := time.Duration(1+r%5) * 20 * time.Microsecond
			if r%3 == 1 { // both are cancelled
				limit = time.Hour
			}
			var held []int
			if r%2 == 0 && s.waits() {
				held = s.fill()
			}
			var sender, receiver *player
			gate := coir.NewChan[int](0)
			atOnce := func(as callerKind, do func(ctx context.Context, a *player)) *player {
				return s.start(as, func(ctx context.Context, a *player) { _, _ = gate.Recv(ctx); do(ctx, a) })
			}
			starts := []func(){
				func() {
					receiver = atOnce(s.receiver, func(ctx context.Context, a *player) { a.v, a.err = s.c.RecvTimeout(ctx, limit) })
				},
				func() {
					sender = atOnce(s.sender, func(ctx context.Context, a *player) { a.err = s.c.SendTimeout(ctx, 100, limit) })
				},
				func() {
					atOnce(s.sender, func(context.Context, *player) {
						if r%3 > 0 {
							sender.cancel(errWhy)
						}
						if r%3 < 2 {
							receiver.cancel(errWhy)
						}
					})
				},
				func() {
					atOnce(s.receiver, func(context.Context, *player) {
						if r%4 == 0 {
							s.c.Abort(errWhy)
						} else if r%4 == 1 {
							s.c.Close()
						}
					})
				},
			}
			for i := range starts {
				starts[(r/4+i)%len(starts)]() // in a different order each time
			}
			s.until("all are at the gate", func() bool { return gate.Stats().Recv.Waiting == len(starts) })
			gate.Close()
			for _, a := range s.players {
				_ = a.ended()
			}
			ends[fmt.Sprint(sender.err, ", ", receiver.err)]++
			s.settled(sender, receiver, held)
		}
		s.t.Log(ends)
	})
}

// settled checks that the results of a sender and a receiver agree with where the values are.
func (s *stage) settled(sender, receiver *player, held []int) {
	s.t.Helper()
	where := s.takeLost()
	if receiver.err == nil {
		where = append(where, receiver.v)
	}
	for {
		v, err := s.c.TryRecv()
		if err != nil {
			break
		}
		where = append(where, v)
	}
	if sender.err == nil {
		held = append(held, 100)
	}
	slices.Sort(where)
	if !slices.Equal(where, held) {
		s.t.Fatalf("the send returned %v, the receive %d and %v; values %v were sent and %v are somewhere",
			sender.err, receiver.v, receiver.err, held, where)
	}
	if st := s.c.Stats(); st.Send.Waiting != 0 || st.Recv.Waiting != 0 {
		s.t.Fatalf("somebody waits: %+v", st)
	}
}

// The claim is final: an operation that was given its value, or has given it, reports that, even if a cancellation or
// an end of the channel comes before it runs again.
//
// Spec: CH-25 (one of data, close, cancel and timeout wins)
// Spec: CH-55 (a value that was claimed is reported)
func TestDataComesBeforeALaterCancel(t *testing.T) {
	after := []func(s *stage, a *player){
		func(_ *stage, a *player) { a.cancel(errWhy) },
		func(s *stage, _ *player) { s.c.Abort(errWhy) },
	}
	for _, then := range after {
		claim(t, everyRow, func(s *stage) {
			a := s.receiversInLine(1)[0]
			if err := s.c.TrySend(5); err != nil {
				s.t.Fatal(err)
			}
			then(s, a)
			s.allEnded([]*player{a}, nil)
			if a.v != 5 {
				s.t.Fatalf("received %d, want 5", a.v)
			}
		})
		claim(t, sendersWait, func(s *stage) {
			s.fill()
			a := s.sendersInLine(1, 5)[0]
			if _, err := s.c.TryRecv(); err != nil {
				s.t.Fatal(err)
			}
			then(s, a)
			s.allEnded([]*player{a}, nil)
		})
	}
}

// All yields the received values until the channel is closed and empty, and receives no more than the loop asks for.
//
// Spec: CH-21 (one sender's values stay in order)
// Spec: CH-33 (a receive on a drained closed channel fails at once)
// Spec: CH-35 (close is graceful)
func TestAll(t *testing.T) {
	claim(t, nothingDrops, func(s *stage) {
		const n = 30
		sender := s.start(s.sender, func(ctx context.Context, a *player) {
			var refused atomic.Int64
			for i := range n {
				if a.err = s.insist(ctx, s.c, i, &refused); a.err != nil {
					return
				}
			}
			s.c.Close()
		})
		var got []int
		receiver := s.start(s.receiver, func(ctx context.Context, _ *player) {
			for v, err := range s.c.All(ctx) {
				if err != nil {
					return
				}
				if got = append(got, v); len(got) == 10 {
					break
				}
			}
			for v, err := range s.c.All(ctx) {
				if err != nil {
					return
				}
				got = append(got, v)
			}
		})
		s.allEnded([]*player{sender, receiver}, nil)
		for i := range n {
			if len(got) != n || got[i] != i {
				s.t.Fatalf("received %v, want 0 to %d in order", got, n-1)
			}
		}
	})
}

// All ends when its context is done, even while it waits.
//
// Spec: CH-24 (a cancelled wait tells the cause)
func TestAllEndsWithItsContext(t *testing.T) {
	claim(t, everyRow, func(s *stage) {
		a := s.start(s.receiver, func(ctx context.Context, a *player) {
			for v, err := range s.c.All(ctx) {
				if err != nil {
					return
				}
				a.err = fmt.Errorf("got %d", v)
			}
		})
		s.until("it waits", func() bool { return s.c.Stats().Recv.Waiting == 1 })
		a.cancel(errWhy)
		s.allEnded([]*player{a}, nil)
	})
}

// Channels are locked in one order, whatever order a select names them in: crossing selects do not deadlock.
func TestCrossingSelectsDoNotLockEachOtherOut(t *testing.T) {
	rounds := sized(200, 1_000, 100_000)
	for _, as := range callerKinds {
		t.Run(as.String(), func(t *testing.T) {
			s := newStage(t, on(t, coir.WithWorkers(2)), row{kind: kinds[1], sender: as, receiver: as})
			a, b := s.channel(), s.channel()
			var done []*player
			for i := range 4 {
				done = append(done, s.start(as, func(ctx context.Context, me *player) {
					var v int
					cases := []coir.Case{a.SendCase(1), a.RecvCase(&v), b.SendCase(1), b.RecvCase(&v)}
					if i%2 == 1 {
						slices.Reverse(cases)
					}
					for range rounds {
						if _, me.err = coir.Select(ctx, cases...); me.err != nil {
							return
						}
					}
				}))
			}
			s.allEnded(done, nil)
		})
	}
}

// A channel knows its waiters and their parkers, but not queues and workers.
//
// Spec: CH-44 (channels do not touch queues or workers)
func TestChannelsDoNotKnowTheScheduler(t *testing.T) {
	files, err := filepath.Glob("internal/channel/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	files = append(files, "chan.go", "chanstats.go", "kinds.go", "batch.go", "internal/wait/wait.go")
	more, _ := filepath.Glob("internal/flavor/*.go")
	for _, file := range append(files, more...) {
		syntax, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, imported := range syntax.Imports {
			if strings.Contains(imported.Path.Value, "internal/sched") {
				t.Errorf("%s imports %s", file, imported.Path.Value)
			}
		}
	}
}

// An operation on a nil channel, fiber or nursery panics and leaves nothing behind: what a fiber does after it has
// recovered is visible to the race detector as before. Both fibers run all of them, and then count under a lock; in a
// race build the detector reports the count if it cannot see the lock.
func TestRecoveredNilPanicLeavesTheDetectorOn(t *testing.T) {
	var c *coir.Chan[int]
	var f *coir.Fiber
	var n *coir.Nursery
	uses := map[string]func(context.Context){
		"Send":        func(ctx context.Context) { _ = c.Send(ctx, 1) },
		"SendTimeout": func(ctx context.Context) { _ = c.SendTimeout(ctx, 1, time.Second) },
		"TrySend":     func(context.Context) { _ = c.TrySend(1) },
		"SendMany":    func(ctx context.Context) { _, _ = c.SendMany(ctx, []int{1, 2}) },
		"SendCase":    func(ctx context.Context) { _, _ = coir.Select(ctx, c.SendCase(1), coir.After(0)) },
		"Recv":        func(ctx context.Context) { _, _ = c.Recv(ctx) },
		"RecvTimeout": func(ctx context.Context) { _, _ = c.RecvTimeout(ctx, time.Second) },
		"TryRecv":     func(context.Context) { _, _ = c.TryRecv() },
		"RecvMany":    func(ctx context.Context) { _, _ = c.RecvMany(ctx, make([]int, 2)) },
		"RecvBatch":   func(ctx context.Context) { _, _ = c.RecvBatch(ctx, make([]int, 2), time.Second) },
		"RecvCase":    func(ctx context.Context) { _, _ = coir.Select(ctx, c.RecvCase(nil), coir.After(0)) },
		"Close":       func(context.Context) { c.Close() },
		"Abort":       func(context.Context) { c.Abort(nil) },
		"Len":         func(context.Context) { c.Len() },
		"Stats":       func(context.Context) { c.Stats() },
		"Fiber.Wait":  func(ctx context.Context) { _ = f.Wait(ctx) },
		"Fiber.State": func(context.Context) { f.State() },
		"Done":        func(ctx context.Context) { _, _ = coir.Select(ctx, f.DoneCase(nil), coir.After(0)) },
		"Limit":       func(context.Context) { n.Limit(1) },
		"Go":          func(context.Context) { n.Go("x", nil) },
	}
	var mu sync.Mutex
	count := 0
	for name, use := range uses {
		crews(t, func(t *testing.T, c *crew) {
			for range 2 {
				c.do(func(ctx context.Context) {
					func() {
						defer func() {
							if recover() == nil {
								t.Errorf("%s on nil does not panic", name)
							}
						}()
						use(ctx)
					}()
					mu.Lock()
					count++
					mu.Unlock()
				})
			}
		})
	}
}
