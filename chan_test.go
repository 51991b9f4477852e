package coir_test

// How an operation on a channel ends: by data, a timeout, a cancel or a close. Exactly one of them ends a wait.
// Whichever it is, the value is accounted for, and nothing of the wait is left in the channel. The tests run over the
// table of conform_test.go. The tests at the end are about cost: no scheduling without need, no allocation, no memory
// kept for nothing.

import (
	"context"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"math"
	"net"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/invariant"
)

// A deadline ends a wait with ErrTimeout, not early. Nothing of the wait is left when the operation returns, and the
// value is still the sender's.
//
// Spec: CH-23 (a deadline ends a wait with ErrTimeout)
// Spec: CH-26 (a failed send keeps its value)
// Spec: CH-28 (an ended wait is unlinked before it returns)
// Spec: CH-56 (a cancelled wait takes no value and no place)
func TestTimeout(t *testing.T) {
	const d = 2 * time.Millisecond
	late := func(ctx context.Context, a *player, op func(context.Context) error) {
		begun := a.s.now()
		a.err = op(ctx)
		if took := a.s.now() - begun; took < d {
			a.err = fmt.Errorf("%s after %v", a.err, took) // and so no longer the expected error
		}
	}
	wants := func(s *stage, a *player, counts func() coir.SideStats) {
		s.t.Helper()
		err := a.ended()
		if !errors.Is(err, coir.ErrTimeout) || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			s.t.Fatalf("returned %v, want ErrTimeout after %v", err, d)
		}
		if a.waiting != 0 {
			s.t.Fatal("the operation has returned and waits")
		}
		if st := counts(); st != (coir.SideStats{TimedOut: 1}) {
			s.t.Fatalf("counted as %+v", st)
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
			s.t.Fatalf("received %d", r.v)
		}
	})
}

// A cancel ends a wait with an error that is context.Canceled and shows the cause. Nothing of the wait is left when the
// operation returns, the waiters behind it keep their order, and the value is still the sender's.
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
				s.t.Fatalf("counted as %+v", st.Send)
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
				s.t.Fatalf("counted as %+v", st.Recv)
			}
		})
	})
}

// A cancel without a cause has the cause context.Canceled.
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
// Spec: CH-26 (a failed send keeps its value)
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

// Close is graceful. The values in the channel and those of waiting senders are still delivered; then, and not before,
// operations return ErrClosed. Later ones return it immediately.
//
// Spec: CH-30 (a send that is not admitted transfers nothing)
// Spec: CH-31 (an admitted send transfers or waits)
// Spec: CH-32 (how a receive is admitted)
// Spec: CH-33 (a receive on a drained closed channel fails at once)
// Spec: CH-34 (close is one step)
// Spec: CH-35 (close is graceful)
// Spec: CH-38 (close and abort are idempotent)
// Spec: CH-41 (a send on a closed channel is an error)
func TestCloseDeliversWhatThereIs(t *testing.T) {
	claim(t, everyRow, func(s *stage) {
		want := s.fill()
		var line []*player
		if s.waits() {
			line = s.sendersInLine(5, 100)
			want = append(want, 100, 101, 102, 103, 104)
		}
		if !s.c.Close() || s.c.Close() {
			s.t.Fatal("the first Close reports true, and no other")
		}
		refused := []*player{s.send(s.c, 200), s.send(s.c, 201), s.send(s.c, 202)}
		s.allEnded(refused, coir.ErrClosed)
		if err := s.c.TrySend(203); !errors.Is(err, coir.ErrClosed) {
			s.t.Fatalf("TrySend: %v", err)
		}
		if st := s.c.Stats(); st.Send.Waiting != len(line) || st.Send.Closed != 4 || !st.Closed {
			s.t.Fatalf("after Close: %+v", st)
		}
		for i, v := range want {
			a := s.recv(s.c)
			s.allEnded([]*player{a}, nil)
			if a.v != v {
				s.t.Fatalf("receive %d after Close took %d, want %d", i+1, a.v, v)
			}
		}
		s.allEnded(line, nil)
		s.allEnded([]*player{s.recv(s.c), s.recv(s.c), s.recv(s.c)}, coir.ErrClosed)
		s.drain(nil, coir.ErrClosed)
		s.loses()
		if st := s.c.Stats(); st.Recv != (coir.SideStats{Closed: 4}) {
			s.t.Fatalf("counted as %+v", st.Recv)
		}
	})
}

// A sender that waits when the channel is closed can still leave; then the channel has nothing left.
//
// Spec: CH-33 (a receive on a drained closed channel fails at once)
// Spec: CH-35 (close is graceful)
// Spec: CH-36 (a drained closed channel ends its receivers)
// Spec: CH-56 (a cancelled wait takes no value and no place)
func TestSenderLeavesAClosedChannel(t *testing.T) {
	claim(t, sendersWait, func(s *stage) {
		held := s.fill()
		line := s.sendersInLine(2, 100)
		s.c.Close()
		for _, a := range line {
			a.cancel(errWhy)
		}
		s.allEnded(line, cancelFor{errWhy})
		s.drain(held, coir.ErrClosed)
	})
}

// crowd is more than one batch of wakes.
const crowd = 70

// Close and Abort wake every waiting receiver, however many.
//
// Spec: CH-36 (a drained closed channel ends its receivers)
// Spec: CH-37 (abort is the hard close)
// Spec: CH-38 (close and abort are idempotent)
// Spec: CH-39 (close claims waiters as any waker does)
func TestEndWakesReceivers(t *testing.T) {
	for _, hard := range []bool{false, true} {
		t.Run(map[bool]string{false: "close", true: "abort"}[hard], func(t *testing.T) {
			claim(t, everyRow, func(s *stage) {
				line := s.receiversInLine(crowd)
				want := coir.ErrClosed
				if hard {
					want = errWhy
					if !s.c.Abort(errWhy) {
						s.t.Fatal("Abort reports false")
					}
				} else if !s.c.Close() {
					s.t.Fatal("Close reports false")
				}
				s.allEnded(line, coir.ErrClosed)
				s.allEnded(line, want)
				if st := s.c.Stats(); st.Recv != (coir.SideStats{Closed: crowd}) {
					s.t.Fatalf("counted as %+v", st.Recv)
				}
				s.loses()
			})
		})
	}
}

// Abort ends everything immediately: waiting senders get ErrClosed with the cause and keep their values; the values in
// the channel go to OnUndelivered, once; nothing can be received.
//
// Spec: CH-26 (a failed send keeps its value)
// Spec: CH-37 (abort is the hard close)
// Spec: CH-38 (close and abort are idempotent)
// Spec: CH-39 (close claims waiters as any waker does)
// Spec: CH-40 (no value is lost silently)
func TestAbortDiscardsWhatThereIs(t *testing.T) {
	for _, closedBefore := range []bool{false, true} {
		t.Run(map[bool]string{false: "open", true: "closed"}[closedBefore], func(t *testing.T) {
			claim(t, everyRow, func(s *stage) {
				held := s.fill()
				var line []*player
				if s.waits() {
					line = s.sendersInLine(crowd, 100)
				}
				if closedBefore && !s.c.Close() {
					s.t.Fatal("Close reports false")
				}
				if s.c.Abort(errWhy) == closedBefore {
					s.t.Fatal("only the call that has closed the channel reports true")
				}
				s.loses(held...)
				s.allEnded(line, coir.ErrClosed)
				s.allEnded(line, errWhy)
				s.holds(0)
				if s.c.Close() || s.c.Abort(errors.New("again")) {
					s.t.Fatal("closing again reports true")
				}
				s.loses()
				after := []*player{s.recv(s.c), s.recv(s.c), s.recv(s.c), s.send(s.c, 1), s.send(s.c, 2), s.send(s.c, 3)}
				s.allEnded(after, coir.ErrClosed)
				s.allEnded(after, errWhy)
				s.drain(nil, coir.ErrClosed)
				st := s.c.Stats()
				if st.Dropped != uint64(len(held)) || st.Sent != uint64(len(held)) || st.Received != 0 || st.Len != 0 ||
					st.Send != (coir.SideStats{Closed: uint64(len(line) + 3)}) {
					s.t.Fatalf("counted as %+v", st)
				}
			})
		})
	}
}

// Of many concurrent calls of Close one reports that it closed the channel.
//
// Spec: CH-34 (close is one step)
// Spec: CH-38 (close and abort are idempotent)
func TestOneOfManyCloses(t *testing.T) {
	rounds := sized(5, 20, 2_000)
	claim(t, everyRow, func(s *stage) {
		for range s.atMost(rounds) {
			c := s.channel()
			var did atomic.Int64
			var closers []*player
			for i := range 6 {
				closers = append(closers, s.start([]sort{s.sender, s.receiver}[i%2], func(context.Context, *player) {
					if i < 4 && c.Close() || i >= 4 && c.Abort(errWhy) {
						did.Add(1)
					}
				}))
			}
			s.allEnded(closers, nil)
			if did.Load() != 1 {
				s.t.Fatalf("%d have closed it", did.Load())
			}
		}
	})
}

// Closed and count are one state: a receiver that finds the channel closed has received every accepted value. The
// sender closes the channel itself right after its last value, or another goroutine closes or aborts it meanwhile.
//
// Spec: CH-29 (a send is admitted if it sees the channel open)
// Spec: CH-30 (a send that is not admitted transfers nothing)
// Spec: CH-31 (an admitted send transfers or waits)
// Spec: CH-34 (close is one step)
// Spec: CH-35 (close is graceful)
// Spec: CH-40 (no value is lost silently)
// Spec: CH-42 (closed and count are one state)
func TestNothingIsLeftBehindAClose(t *testing.T) {
	rounds := sized(30, 150, 20_000)
	closes := map[string]func(c *coir.Chan[int]){
		"its sender":     nil,
		"somebody":       func(c *coir.Chan[int]) { c.Close() },
		"somebody, hard": func(c *coir.Chan[int]) { c.Abort(errWhy) },
	}
	for name, end := range closes {
		t.Run(name, func(t *testing.T) {
			claim(t, everyRow, func(s *stage) { s.closeRounds(s.atMost(rounds), end) })
		})
	}
}

func (s *stage) closeRounds(rounds int, end func(*coir.Chan[int])) {
	chans := make([]*coir.Chan[int], rounds)
	for i := range chans {
		chans[i] = s.channel()
	}
	accepted, received := make([]int, rounds), make([]int, rounds)
	parties := int32(2)
	arrived, gates := make([]atomic.Int32, rounds), make([]*coir.Chan[int], rounds)
	for i := range gates {
		gates[i] = coir.NewChan[int](0)
	}
	meet := func(ctx context.Context, round int) { // all begin a round together
		if arrived[round].Add(1) == parties {
			gates[round].Close()
		} else {
			_, _ = gates[round].Recv(ctx)
		}
	}
	var players []*player
	if end != nil {
		parties = 3
		players = append(players, s.start(s.receiver, func(ctx context.Context, _ *player) {
			for r, c := range chans {
				meet(ctx, r)
				for range r % 5 {
					s.giveWay(ctx)
				}
				end(c)
			}
		}))
	}
	sender := s.start(s.sender, func(ctx context.Context, a *player) {
		var refused atomic.Int64
		for r, c := range chans {
			meet(ctx, r)
			for v := range r % 40 {
				if err := s.insist(ctx, c, v, &refused); err != nil {
					if end == nil || !errors.Is(err, coir.ErrClosed) {
						a.err = err
						return
					}
					break
				}
				accepted[r]++
			}
			c.Close()
		}
	})
	receiver := s.start(s.receiver, func(ctx context.Context, a *player) {
		for r, c := range chans {
			meet(ctx, r)
			for {
				_, err := c.Recv(ctx)
				if err != nil {
					if a.err = all(coir.ErrClosed, err); a.err != nil {
						return
					}
					break
				}
				received[r]++
			}
			if st := c.Stats(); !st.Closed || st.Len != 0 || st.Send.Waiting != 0 {
				a.err = fmt.Errorf("round %d: ErrClosed while the channel is %+v", r, st)
				return
			}
		}
	})
	s.allEnded(append(players, sender, receiver), nil)
	for r, c := range chans {
		dropped := int(c.Stats().Dropped)
		if accepted[r] != received[r]+dropped || dropped > 0 && !s.drops() && end == nil {
			s.t.Fatalf("round %d: %d accepted, %d received, %d dropped", r, accepted[r], received[r], dropped)
		}
	}
	dropped := 0
	for _, c := range chans {
		dropped += int(c.Stats().Dropped)
	}
	if lost := len(s.takeLost()); lost != dropped {
		s.t.Fatalf("%d values were dropped and %d handed over", dropped, lost)
	}
}

// Data, a close, a cancel and a deadline race for one wait. One wins, and the results of both sides agree: a send that
// succeeded is a value that was received or handed over, and a send that failed is not.
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
			atOnce := func(as sort, do func(ctx context.Context, a *player)) *player {
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

// The claim is final: an operation that was given its value, or has given it, reports that, even if a cancel or an end
// of the channel comes before it runs again.
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
				s.t.Fatalf("received %d", a.v)
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
				s.t.Fatalf("received %v", got)
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

// The error of a closed channel names the operation and the channel, and says why.
//
// Spec: CH-37 (abort is the hard close)
func TestErrorsNameTheChannel(t *testing.T) {
	cause := errors.New("disk is full")
	closeThenAbort := func(c *coir.Chan[int]) bool { return c.Close() && !c.Abort(cause) }
	abort := func(cause error) func(*coir.Chan[int]) bool {
		return func(c *coir.Chan[int]) bool { return c.Abort(cause) }
	}
	for _, x := range []struct {
		name string
		end  func(*coir.Chan[int]) bool
		text string // after the operation, if the channel has a name
	}{
		{"orders", (*coir.Chan[int]).Close, "channel is closed"},
		{"orders", abort(cause), "channel was aborted: disk is full"},
		{"orders", abort(nil), "channel was aborted"},
		{"orders", closeThenAbort, "channel was aborted: disk is full"},
		{"", (*coir.Chan[int]).Close, "channel is closed"},
		{"", abort(nil), "channel was aborted"},
		{"", abort(cause), "channel was aborted: disk is full"},
		{"", closeThenAbort, "channel was aborted: disk is full"},
	} {
		c := coir.NewChan[int](0, coir.WithName(x.name))
		if c.Name() != x.name || !x.end(c) {
			t.Fatalf("channel %q", c.Name())
		}
		for _, op := range operationsOn(t.Context(), c) {
			want := "coir: " + x.text
			if x.name != "" {
				want = "coir: " + op.verb + ": " + x.text
			}
			err := op.err
			if err == nil || !errors.Is(err, coir.ErrClosed) || err.Error() != want {
				t.Errorf("the error is %q, want %q", err, want)
			}
			if errors.Is(err, cause) != strings.Contains(x.text, cause.Error()) {
				t.Errorf("%q, and it is the cause of Abort: %v", err, errors.Is(err, cause))
			}
			for _, other := range []error{coir.ErrTimeout, coir.ErrWouldBlock, context.Canceled, context.DeadlineExceeded} {
				if errors.Is(err, other) {
					t.Errorf("%q is %q too", err, other)
				}
			}
		}
	}
}

// failing is an operation that failed.
type failing struct {
	verb string
	err  error
}

// operationsOn returns the results of all operations on a channel on which none can succeed.
func operationsOn(ctx context.Context, c *coir.Chan[int]) []failing {
	_, recv := c.Recv(ctx)
	_, timed := c.RecvTimeout(ctx, 1)
	_, tried := c.TryRecv()
	_, recvMany := c.RecvMany(ctx, make([]int, 2))
	_, recvBatch := c.RecvBatch(ctx, make([]int, 2), time.Hour)
	_, sendMany := c.SendMany(ctx, []int{1, 2})
	_, selected := coir.Select(ctx, c.RecvCase(nil))
	_, selectedSend := coir.Select(ctx, c.SendCase(1))
	send, receive := "send on "+c.Name(), "receive from "+c.Name()
	return []failing{
		{receive, recv}, {receive, timed}, {receive, tried}, {receive, recvMany}, {receive, selected}, {send, selectedSend},
		{send, c.Send(ctx, 1)}, {send, c.SendTimeout(ctx, 1, 1)}, {send, c.TrySend(1)}, {send, sendMany}, {receive, recvBatch},
	}
}

// A timeout is a net.Error, like those of package net and of package context.
//
// Spec: CH-23 (a deadline ends a wait with ErrTimeout)
func TestTimeoutIsANetError(t *testing.T) {
	late, stop := coir.WithTimeout(t.Context(), 0)
	defer stop()
	for _, name := range []string{"", "orders"} {
		c := coir.NewChan[int](0, coir.WithName(name))
		_, limit := c.RecvTimeout(t.Context(), 1)
		for _, err := range []error{limit, c.Send(late, 1), coir.Sleep(late, time.Hour)} {
			if ne := net.Error(nil); !errors.As(err, &ne) || !ne.Timeout() {
				t.Errorf("%q is no net.Error of a timeout", err)
			}
		}
	}
}

// A channel that was aborted because something else was closed, timed out or was cancelled has not timed out itself,
// nor was the operation cancelled: the cause is shown but does not match.
//
// Spec: CH-37 (abort is the hard close)
func TestAbortForTheErrorOfAnotherOperation(t *testing.T) {
	other := coir.NewChan[int](0, coir.WithName("other"))
	_, timeout := other.RecvTimeout(t.Context(), 1)
	_, wouldBlock := other.TryRecv()
	other.Close()
	_, closed := other.TryRecv()
	for _, cause := range []error{
		timeout, wouldBlock, closed, context.Canceled, context.DeadlineExceeded, coir.ErrTimeout,
		fmt.Errorf("upstream: %w", timeout),
	} {
		c := coir.NewChan[int](0)
		c.Abort(cause)
		for _, op := range operationsOn(t.Context(), c) {
			if !errors.Is(op.err, coir.ErrClosed) || op.err.Error() != "coir: channel was aborted: "+cause.Error() {
				t.Errorf("%q for %q", op.err, cause)
			}
			for _, is := range []error{coir.ErrTimeout, coir.ErrWouldBlock, context.Canceled, context.DeadlineExceeded} {
				if errors.Is(op.err, is) {
					t.Errorf("%q is %q", op.err, is)
				}
			}
		}
	}
}

// The errors of an open channel also name the operation, if the channel has a name. Otherwise they are the exported
// values.
//
// Spec: CH-23 (a deadline ends a wait with ErrTimeout)
// Spec: CH-24 (a cancelled wait tells the cause)
func TestErrorsNameTheOperation(t *testing.T) {
	over, cancel := coir.WithCancelCause(t.Context())
	cancel(errWhy)
	late, stop := coir.WithTimeout(t.Context(), 0)
	defer stop()
	for _, name := range []string{"", "orders"} {
		send, receive := "coir: ", "coir: "
		if name != "" {
			send, receive = "coir: send on orders: ", "coir: receive from orders: "
		}
		c := coir.NewChan[int](0, coir.WithName(name))
		check := func(verb, text string, want error, errs ...error) {
			t.Helper()
			for _, err := range errs {
				if err == nil || !isWanted(err, want) || err.Error() != verb+text {
					t.Errorf("the error is %q, want %q", err, verb+text)
				}
				_, isCancel := want.(cancelFor)
				if name == "" && !isCancel && err != want { //nolint:errorlint // the very value is promised
					t.Errorf("%q is not the very value", err)
				}
			}
		}
		_, err := c.TryRecv()
		check(receive, "would block", coir.ErrWouldBlock, err)
		check(send, "would block", coir.ErrWouldBlock, c.TrySend(1))
		_, err = c.RecvTimeout(t.Context(), 1)
		_, now := c.RecvTimeout(t.Context(), 0)
		_, scope := c.Recv(late)
		check(receive, "timed out", coir.ErrTimeout, err, now, scope)
		check(send, "timed out", coir.ErrTimeout,
			c.SendTimeout(t.Context(), 1, 1), c.SendTimeout(t.Context(), 1, 0), c.Send(late, 1))
		_, err = c.Recv(over)
		_, timed := c.RecvTimeout(over, 1)
		check(receive, "cancelled: because", cancelFor{errWhy}, err, timed)
		check(send, "cancelled: because", cancelFor{errWhy}, c.Send(over, 1), c.SendTimeout(over, 1, 1))
	}
}

// A channel, and the fibers and goroutines that used it, keep no reference to a value that has left: received, dropped,
// or still its sender's because the send failed.
//
// Spec: CH-26 (a failed send keeps its value)
// Spec: CH-56 (a cancelled wait takes no value and no place)
func TestNothingIsKeptOfAValueThatLeft(t *testing.T) {
	type thing struct{ _ [64]byte }
	claimInTime(t, everyRow, func(s *stage) {
		c := coir.NewChan[*thing](s.capacity, coir.WithOverflow(s.over))
		var things []weak.Pointer[thing]
		fresh := func() *thing {
			p := new(thing)
			things = append(things, weak.Make(p))
			return p
		}
		fill := func() {
			for range max(s.capacity, 1) {
				_ = c.TrySend(fresh())
			}
		}
		empty := func() {
			for _, err := c.TryRecv(); err == nil; _, err = c.TryRecv() {
			}
		}
		// Kept and received, dropped, or refused: for lack of room or time, or because of a context that is done.
		refused := s.start(s.sender, func(ctx context.Context, a *player) {
			fill()
			_ = c.SendTimeout(ctx, fresh(), time.Millisecond)
			a.cancel(errWhy)
			_ = c.Send(ctx, fresh())
		})
		s.allEnded([]*player{refused}, nil)
		empty()
		// Given to a waiting receiver.
		receiver := s.start(s.receiver, func(ctx context.Context, a *player) { _, a.err = c.Recv(ctx) })
		s.until("it waits", func() bool { return c.Stats().Recv.Waiting == 1 })
		_ = c.TrySend(fresh())
		s.allEnded([]*player{receiver}, nil)
		// Taken from a waiting sender.
		if s.waits() {
			sender := s.start(s.sender, func(ctx context.Context, a *player) { fill(); a.err = c.Send(ctx, fresh()) })
			s.until("it waits", func() bool { return c.Stats().Send.Waiting == 1 })
			empty()
			s.allEnded([]*player{sender}, nil)
		}
		c.Close()
		_ = c.TrySend(fresh())
		s.until("the values are collected", func() bool {
			runtime.GC()
			return !slices.ContainsFunc(things, func(p weak.Pointer[thing]) bool { return p.Value() != nil })
		})
		runtime.KeepAlive(c)
	})
}

// Channels are locked in one order, whatever order a select names them in: crossing selects do not deadlock.
//
// Spec: CH-54 (channel ids order their locks)
func TestCrossingSelectsDoNotLockEachOtherOut(t *testing.T) {
	rounds := sized(200, 1_000, 100_000)
	for _, as := range sorts {
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

// An operation that need not wait does not touch the scheduler.
//
// Spec: CH-43 (a fast operation leaves the scheduler alone)
func TestOperationsThatNeedNotWaitDoNotSwitch(t *testing.T) {
	rt := one(t)
	err := rt.Run(t.Context(), func(ctx context.Context, _ *coir.Nursery) error {
		for _, k := range kinds[1:] {
			c := coir.NewChan[int](k.capacity)
			_ = coir.Yield(ctx) // a fresh budget
			before := rt.Stats()
			for i := range 30 {
				err := c.Send(ctx, i)
				_, err2 := c.Recv(ctx)
				err3 := c.SendTimeout(ctx, i, time.Hour)
				_, err4 := c.RecvTimeout(ctx, time.Hour)
				if err := errors.Join(err, err2, err3, err4); err != nil {
					return err
				}
			}
			if after := rt.Stats(); after.Switches != before.Switches || after.Woken != before.Woken {
				t.Errorf("%s: %d switches and %d wakes", k.name, after.Switches-before.Switches, after.Woken-before.Woken)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A fiber that never has to wait still lets others run.
//
// Spec: SC-20 (a fiber yields after 128 operations)
func TestOperationsThatNeedNotWaitLetOthersRun(t *testing.T) {
	contexts := map[string]func(context.Context) context.Context{
		"own":     func(ctx context.Context) context.Context { return ctx },
		"foreign": func(context.Context) context.Context { return context.Background() },
	}
	for _, over := range policies {
		for name, in := range contexts {
			for _, full := range []bool{false, true} {
				if full && over == coir.OverflowWait {
					continue
				}
				t.Run(fmt.Sprintf("%v/%s/full %v", over, name, full), func(t *testing.T) {
					rt := one(t)
					err := rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
						c := coir.NewChan[int](1, coir.WithOverflow(over))
						_ = c.TrySend(0)
						var turns atomic.Int64
						var over atomic.Bool
						n.Go("other", func(ctx context.Context) error {
							for !over.Load() && coir.Yield(ctx) == nil {
								turns.Add(1)
							}
							return nil
						})
						for range 2_000 {
							if !full {
								_, _ = c.Recv(in(ctx))
							}
							_ = c.Send(in(ctx), 0)
						}
						// On a busy machine, a worker that was found held up has given the other fiber away, and first
						// goes on with its own.
						if n, held := turns.Load(), rt.Stats().Replaced; n < 2_000/128-1-2*held {
							t.Errorf("another fiber had %d turns in 2000 operations", n)
						}
						over.Store(true)
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
}

// Waiting for a deadline is a park with a timer: no switch happens until the deadline has passed.
//
// Spec: CH-27 (a timed wait never polls)
func TestTimedWaitDoesNotPoll(t *testing.T) {
	rt := one(t)
	err := rt.Run(t.Context(), func(ctx context.Context, _ *coir.Nursery) error {
		c := coir.NewChan[int](0)
		before := rt.Stats()
		_, err := c.RecvTimeout(ctx, 20*time.Millisecond)
		err2 := c.SendTimeout(ctx, 1, 20*time.Millisecond)
		after := rt.Stats()
		if n := after.Switches - before.Switches; n > 8 || after.Woken-before.Woken > 2 {
			t.Errorf("two waits made %d switches and %d wakes", n, after.Woken-before.Woken)
		}
		return all(coir.ErrTimeout, err, err2)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A producer that waits at a full channel does not hold its worker: the only worker goes on with other fibers, among
// them the consumer that makes room.
//
// Spec: CH-53 (a held-back producer holds no worker)
// Spec: FB-19 (an operation parks the fiber, not the worker)
func TestProducerThatIsHeldBackHoldsNoWorker(t *testing.T) {
	for _, k := range kinds[:3] {
		onOne(t, func(ctx context.Context, n *coir.Nursery) error {
			c := coir.NewChan[int](k.capacity)
			var produced atomic.Int64
			n.Go("producer", func(ctx context.Context) error {
				defer c.Close()
				for i := range 100 {
					if err := c.Send(ctx, i); err != nil {
						return err
					}
					produced.Add(1)
				}
				return nil
			})
			yieldUntil(ctx, t, "the producer is held back", func() bool { return c.Stats().Send.Waiting == 1 })
			for range 50 {
				if err := coir.Yield(ctx); err != nil {
					return err
				}
			}
			if n := int(produced.Load()); n != k.capacity {
				t.Errorf("%s: %d were produced before there was a consumer", k.name, n)
			}
			if got, err := collect(c.All(ctx)); err != nil || len(got) != 100 || produced.Load() != 100 {
				t.Errorf("%s: %d produced, %d consumed: %v", k.name, produced.Load(), len(got), err)
			}
			return nil
		}, nil)
	}
}

// In the steady state nothing is allocated: neither by operations that wait nor by others, with a time limit or
// without, nor by one fiber on channels of several types.
//
// Spec: CH-49 (a blocking operation allocates nothing)
func TestOperationsAllocateNothing(t *testing.T) {
	if raceEnabled || invariant.Enabled {
		t.Skip("the checks of this build allocate")
	}
	var byAsking uint64
	onOne(t, func(ctx context.Context, _ *coir.Nursery) error {
		byAsking = allocations(func() { _ = coir.Yield(ctx) })
		return nil
	}, nil)
	if byAsking > 50 {
		t.Skip("without assembly, finding out who calls allocates")
	}
	for _, k := range kinds {
		for _, timed := range []bool{false, true} {
			for _, as := range callers[:4] {
				t.Run(fmt.Sprintf("%s/timed %v/%v to %v", k.name, timed, as[0], as[1]), func(t *testing.T) {
					s := newStage(t, on(t, coir.WithWorkers(1)), row{kind: k, sender: as[0], receiver: as[1]})
					s.passWithoutMemory(timed)
				})
			}
		}
	}
	t.Run("try", func(t *testing.T) {
		onOne(t, func(context.Context, *coir.Nursery) error {
			for _, k := range kinds {
				c := coir.NewChan[int](k.capacity)
				noMemory(t, func() {
					for range 100 {
						_, _ = c.TryRecv()
						_ = c.TrySend(1)
						if k.capacity != coir.Unbounded {
							_ = c.TrySend(1)
						}
					}
				})
			}
			return nil
		}, nil)
	})
	t.Run("three types", func(t *testing.T) {
		onOne(t, func(ctx context.Context, n *coir.Nursery) error {
			a, b, c := coir.NewChan[int](0), coir.NewChan[string](0), coir.NewChan[[64]byte](0)
			n.Go("other", func(ctx context.Context) error {
				for {
					v, err := a.Recv(ctx)
					if err != nil {
						return nil // done
					}
					_ = b.SendTimeout(ctx, "x", time.Hour)
					_ = c.Send(ctx, [64]byte{byte(v)})
				}
			})
			noMemory(t, func() {
				for i := range 100 {
					_ = a.SendTimeout(ctx, i, time.Hour)
					_, _ = b.Recv(ctx)
					if v, err := c.RecvTimeout(ctx, time.Hour); err != nil || v[0] != byte(i) {
						t.Errorf("received %v, %v", v, err)
					}
				}
			})
			a.Close()
			return nil
		}, nil)
	})
}

// withoutCancel returns ctx for a fiber. A goroutine gets a context that is never done, because its wait under one that
// can be needs a channel.
func withoutCancel(ctx context.Context) context.Context {
	if coir.Self(ctx) == nil {
		return context.Background()
	}
	return ctx
}

// passWithoutMemory passes values back and forth between two players. One direction goes from full to empty, so that
// each side sometimes waits.
func (s *stage) passWithoutMemory(timed bool) {
	there, back := s.channel(), s.channel()
	echo := s.start(s.receiver, func(ctx context.Context, a *player) {
		ctx = withoutCancel(ctx)
		for {
			v, err := there.Recv(ctx)
			if timed {
				v, err = recvAgain(ctx, there, v, err)
			}
			if err != nil {
				back.Close()
				return
			}
			if v == 0 { // the last of some
				if a.err = back.Send(ctx, v); a.err != nil {
					return
				}
			}
		}
	})
	sender := s.start(s.sender, func(ctx context.Context, a *player) {
		ctx = withoutCancel(ctx)
		noMemory(s.t, func() {
			for range 10 {
				for v := 9; v >= 0; v-- {
					if timed {
						a.err = there.SendTimeout(ctx, v, time.Hour)
					} else {
						a.err = there.Send(ctx, v)
					}
					if a.err != nil {
						return
					}
				}
				if timed {
					_, a.err = back.RecvTimeout(ctx, time.Hour)
				} else {
					_, a.err = back.Recv(ctx)
				}
			}
		})
		there.Close()
	})
	s.allEnded([]*player{sender, echo}, nil)
}

// recvAgain receives another value with a time limit, unless that was the last.
func recvAgain(ctx context.Context, c *coir.Chan[int], v int, err error) (int, error) {
	if v == 0 || err != nil {
		return v, err
	}
	return c.RecvTimeout(ctx, time.Hour)
}

// noMemory fails the test if f allocates.
func noMemory(t tester, f func()) {
	t.Helper()
	n := allocations(f)
	for range 4 { // allocations of others come and go; those of f are there each time
		if n <= 50 {
			return
		}
		n = allocations(f)
	}
	t.Errorf("%d allocations in 100 runs", n)
}

// allocations counts the allocations of 100 runs of f, after a warm-up. A handful is not f's, but package testing's or
// the garbage collector's.
func allocations(f func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // it would empty pools
	for range 20 {
		f()
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100 {
		f()
	}
	runtime.ReadMemStats(&after)
	return after.Mallocs - before.Mallocs
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

// A wait on a channel of large values holds memory for one value, only while it lasts: neither a fiber that goes on,
// nor the goroutine that ran one, nor a goroutine that waited, keeps it.
//
// Spec: CH-26 (a failed send keeps its value)
func TestLargePlacesAreNotKept(t *testing.T) {
	type large [1 << 16]byte
	const waits = 200
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // a sync.Pool is emptied in two collections
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	crews(t, func(t *testing.T, c *crew) {
		before := heap()
		ch, on := coir.NewChan[large](0), coir.NewChan[int](0)
		for range waits {
			c.do(func(ctx context.Context) {
				_, _ = ch.Recv(ctx)
				_, _ = on.Recv(ctx)
			})
			c.do(func(ctx context.Context) { _, _ = ch.RecvTimeout(ctx, time.Hour) })
		}
		waitFor(t, ch, 0, 2*waits)
		ch.Abort(nil)
		waitFor(t, on, 0, waits)
		eventually(t, "half of the waiters live, and hold no large value", func() bool {
			return heap() < before+waits<<16/4
		})
		on.Close()
		c.wait()
	})
}
