package coir_test

// How a channel is closed and aborted: which values are still delivered, and which waits end.

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/coir-go/coir"
)

// Close is graceful: the values in the channel and those of waiting senders are still delivered. Only after that
// operations return ErrClosed, and later operations return it immediately.
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
			s.t.Fatalf("counted as %+v, want %+v", st.Recv, coir.SideStats{Closed: 4})
		}
	})
}

// A sender that waits when the channel is closed can still leave; then the channel has nothing left.
//
// Spec: CH-33 (a receive on a drained closed channel fails at once)
// Spec: CH-35 (close is graceful)
// Spec: CH-36 (a drained closed channel ends its receivers)
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
					s.t.Fatalf("counted as %+v, want %+v", st.Recv, coir.SideStats{Closed: crowd})
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
// Spec: CH-40 (no value is lost silently)
// Spec: BU-10 (undelivered buffers go back)
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
					s.t.Fatalf("counted as %+v, want %+v", st, coir.SideStats{Closed: uint64(len(line) + 3)})
				}
			})
		})
	}
}

// Of many concurrent calls of Close one reports that it closed the channel.
//
// Spec: CH-38 (close and abort are idempotent)
func TestOneOfManyCloses(t *testing.T) {
	rounds := sized(5, 20, 2_000)
	claim(t, everyRow, func(s *stage) {
		for range s.atMost(rounds) {
			c := s.channel()
			var did atomic.Int64
			var closers []*player
			for i := range 6 {
				closers = append(closers, s.start([]callerKind{s.sender, s.receiver}[i%2], func(context.Context, *player) {
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
