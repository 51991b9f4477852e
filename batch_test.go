package coir_test

// SendMany and RecvMany behave like a series of sends and receives, but lock less often. So they make the same
// guarantees: the order of values, the order of waiters, and what happens to each value when an operation ends early.

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coir-go/coir"
)

// numbers returns n numbers, from first on.
func numbers(first, n int) []int {
	values := make([]int, n)
	for i := range values {
		values[i] = first + i
	}
	return values
}

// sendMany makes the row's sender send all the values. The player's v is the number of values that it has sent.
func (s *stage) sendMany(values []int) *player {
	return s.start(s.sender, func(ctx context.Context, a *player) { a.v, a.err = s.c.SendMany(ctx, values) })
}

// recvMany makes the row's receiver receive once into the slice.
func (s *stage) recvMany(into []int) *player {
	return s.start(s.receiver, func(ctx context.Context, a *player) { a.v, a.err = s.c.RecvMany(ctx, into) })
}

// Many values pass in order, in batches of any size, even batches larger than the capacity.
//
// Spec: CH-02 (kinds differ in what they store)
// Spec: CH-05 (a taken value resumes one sender)
// Spec: CH-21 (one sender's values stay in order)
func TestManyGoThroughInOrder(t *testing.T) {
	n := sized(400, 2_000, 100_000)
	for _, piece := range []int{1, 5, 700} {
		claim(t, func(r row) bool { return !r.drops() && r.over != coir.OverflowFail }, func(s *stage) {
			n := s.atMost(n)
			sender := s.start(s.sender, func(ctx context.Context, a *player) {
				for at := 0; at < n; at += piece {
					values := numbers(at, min(piece, n-at))
					if a.v, a.err = s.c.SendMany(ctx, values); a.err != nil || a.v != len(values) {
						return
					}
				}
				s.c.Close()
			})
			var got []int
			receiver := s.start(s.receiver, func(ctx context.Context, a *player) {
				into := make([]int, 9)
				for {
					n, err := s.c.RecvMany(ctx, into)
					if err != nil {
						a.err = all(coir.ErrClosed, err)
						return
					}
					got = append(got, into[:n]...)
				}
			})
			s.allEnded([]*player{sender, receiver}, nil)
			if !slices.Equal(got, numbers(0, n)) {
				s.t.Fatalf("%d values were sent, and %d came, not all in order", n, len(got))
			}
		})
	}
}

// RecvMany waits for one value and takes the other available values: those in the channel, and those of waiting
// senders. Here more senders wait than fit into one batch of wakes. It does not wait for more, and leaves the rest of
// the slice unchanged.
//
// Spec: CH-08 (a receive takes the oldest)
// Spec: CH-10 (room goes to the longest-waiting sender)
// Spec: CH-19 (waiters are served in order)
func TestRecvManyTakesWhatThereIs(t *testing.T) {
	claim(t, everyRow, func(s *stage) {
		want := s.fill()
		var line []*player
		if s.waits() {
			line = s.sendersInLine(crowd, 100)
			want = append(want, numbers(100, crowd)...)
		}
		if len(want) > 0 {
			into := numbers(-200, 200)
			a := s.recvMany(into)
			s.allEnded([]*player{a}, nil)
			if !slices.Equal(into[:a.v], want) || into[a.v] != a.v-200 {
				s.t.Fatalf("received %d: %v, want %v", a.v, into[:a.v+1], want)
			}
		}
		s.allEnded(line, nil)
		s.holds(0)

		into := make([]int, 3)
		a := s.recvMany(into)
		s.until("it waits", func() bool { return s.c.Stats().Recv.Waiting == 1 })
		s.allEnded([]*player{s.send(s.c, 5)}, nil)
		s.allEnded([]*player{a}, nil)
		if a.v != 1 || into[0] != 5 {
			s.t.Fatalf("received %d: %v", a.v, into)
		}
	})
}

// RecvMany takes no more values than fit into the slice.
//
// Spec: CH-08 (a receive takes the oldest)
func TestRecvManyTakesWhatFits(t *testing.T) {
	claim(t, func(r row) bool { return r.capacity == 7 || r.capacity == coir.Unbounded }, func(s *stage) {
		held := s.fill()
		none := s.recvMany(nil)
		into := make([]int, 3)
		a := s.recvMany(into)
		s.allEnded([]*player{none, a}, nil)
		if none.v != 0 || a.v != 3 || !slices.Equal(into, held[:3]) {
			s.t.Fatalf("received %d, and %d: %v", none.v, a.v, into)
		}
		s.drain(held[3:], coir.ErrWouldBlock)
	})
}

// SendMany serves waiting receivers in their order, however many, before it fills the buffer, and then waits for its
// turn.
//
// Spec: CH-07 (a send with room does not wait)
// Spec: CH-09 (a send prefers a waiting receiver)
// Spec: CH-19 (waiters are served in order)
// Spec: CH-20 (a waiting operation beats a passing one)
func TestSendManyServesThoseWhoWait(t *testing.T) {
	claim(t, func(r row) bool { return r.bounded() && !r.drops() }, func(s *stage) {
		line := s.receiversInLine(crowd)
		held := numbers(crowd, s.capacity)
		whole := s.sendMany(numbers(0, crowd+s.capacity))
		s.allEnded(append(line, whole), nil)
		for i, a := range line {
			if a.v != i {
				s.t.Fatalf("receiver %d got %d", i, a.v)
			}
		}
		if whole.v != crowd+s.capacity {
			s.t.Fatalf("%d were sent", whole.v)
		}
		s.drain(held, coir.ErrWouldBlock)
	})
}

// A SendMany that ends early returns how many values were sent. Those are delivered; the others are still the sender's.
//
// Spec: CH-24 (a cancelled wait tells the cause)
// Spec: CH-26 (a failed send keeps its value)
// Spec: CH-30 (a send that is not admitted transfers nothing)
// Spec: CH-35 (close is graceful)
// Spec: CH-37 (abort is the hard close)
// Spec: CH-40 (no value is lost silently)
func TestSendManyThatEndsInTheMiddle(t *testing.T) {
	ends := map[string]struct {
		end func(s *stage, a *player)
		err error
	}{
		"cancel": {func(_ *stage, a *player) { a.cancel(errWhy) }, cancelFor{errWhy}},
		"close":  {func(s *stage, _ *player) { s.c.Close() }, coir.ErrClosed},
		"abort":  {func(s *stage, _ *player) { s.c.Abort(errWhy) }, errWhy},
	}
	for name, x := range ends {
		t.Run(name, func(t *testing.T) {
			claim(t, sendersWait, func(s *stage) {
				a := s.sendMany(numbers(0, 30))
				s.until("it waits", func() bool { return s.c.Stats().Send.Waiting == 1 })
				for v := range 10 {
					if got, err := s.c.TryRecv(); err != nil || got != v {
						s.t.Fatalf("received %d, %v; want %d", got, err, v)
					}
					s.until("it waits again", func() bool { return s.c.Stats().Send.Waiting == 1 })
				}
				sent := 10 + s.capacity
				x.end(s, a)
				switch name {
				case "close": // the waiting value is still delivered
					s.drain(numbers(10, s.capacity+1), coir.ErrClosed)
					sent++
				case "abort":
					s.loses(numbers(10, s.capacity)...)
				}
				if err := a.ended(); !isWanted(err, x.err) || a.v != sent {
					s.t.Fatalf("SendMany returned %d, %v; want %d and %v", a.v, err, sent, x.err)
				}
				if name == "cancel" {
					s.drain(numbers(10, s.capacity), coir.ErrWouldBlock)
				}
				s.loses()
			})
		})
	}
}

// SendMany to a channel that drops sends all values; to a channel that fails, as many as there is room for.
//
// Spec: CH-12 (a conflated send never waits)
// Spec: CH-15 (an unbounded send never waits)
// Spec: CH-17 (the overflow policy decides a full send)
// Spec: CH-18 (dropped values are counted and handed over)
func TestSendManyOverflows(t *testing.T) {
	claim(t, func(r row) bool { return !r.waits() }, func(s *stage) {
		values := numbers(0, 20)
		a := s.sendMany(values)
		var wantErr error
		sent, keeps, lost := 20, values, []int(nil)
		room := s.c.Cap()
		switch {
		case s.capacity == coir.Unbounded:
		case s.capacity == coir.Conflated, s.over == coir.OverflowDropOldest:
			keeps, lost = values[20-room:], values[:20-room]
		case s.over == coir.OverflowDropNewest:
			keeps, lost = values[:room], values[room:]
		case s.over == coir.OverflowFail:
			keeps, sent, wantErr = values[:room], room, coir.ErrWouldBlock
		}
		if err := a.ended(); !errors.Is(err, wantErr) || a.v != sent {
			s.t.Fatalf("SendMany returned %d, %v; want %d and %v", a.v, err, sent, wantErr)
		}
		s.loses(lost...)
		s.drain(keeps, coir.ErrWouldBlock)
	})
}

// At the end of a channel RecvMany returns the remaining values, and then the error. Sending no values needs no
// channel.
//
// Spec: CH-33 (a receive on a drained closed channel fails at once)
// Spec: CH-35 (close is graceful)
// Spec: CH-41 (a send on a closed channel is an error)
// Spec: CH-42 (closed and count are one state)
func TestManyAtTheEndOfAChannel(t *testing.T) {
	claim(t, everyRow, func(s *stage) {
		held := s.fill()
		s.c.Close()
		if len(held) > 0 {
			into := make([]int, 30)
			a := s.recvMany(into)
			s.allEnded([]*player{a}, nil)
			if !slices.Equal(into[:a.v], held) {
				s.t.Fatalf("received %v, want %v", into[:a.v], held)
			}
		}
		last, refused, none := s.recvMany(make([]int, 3)), s.sendMany([]int{1, 2}), s.sendMany(nil)
		s.allEnded([]*player{last, refused}, coir.ErrClosed)
		s.allEnded([]*player{none}, nil)
		if last.v != 0 || refused.v != 0 || none.v != 0 {
			s.t.Fatalf("%d received, %d and %d sent", last.v, refused.v, none.v)
		}
	})
}

// RecvBatch is used by goroutines and fibers, in a bubble, where time is exact: a batch ends when it is full, when
// linger has passed since its first value, and when the channel is closed.
func TestRecvBatchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, fiber := range []bool{true, false} {
			for _, c := range []struct {
				name  string
				after []time.Duration // when values are sent
				close bool
				want  int
				took  time.Duration
			}{
				{"full", []time.Duration{0, 1, 2, 3}, false, 3, 2 * time.Second},
				{"linger", []time.Duration{1, 5}, false, 2, 11 * time.Second},
				{"closed", []time.Duration{1}, true, 1, time.Second},
			} {
				ch := coir.NewChan[int](coir.Unbounded)
				began := time.Now()
				sender := make(chan struct{})
				go func() {
					defer close(sender)
					for i, d := range c.after {
						time.Sleep(time.Until(began.Add(d * time.Second)))
						_ = ch.Send(context.Background(), i)
					}
					if c.close {
						ch.Close()
					}
				}()
				receive := func(ctx context.Context, _ *coir.Nursery) error {
					n, err := ch.RecvBatch(ctx, make([]int, 3), 10*time.Second)
					if took := time.Since(began); n != c.want || err != nil || took != c.took {
						t.Errorf("%s: %d, %v after %v; want %d after %v", c.name, n, err, took, c.want, c.took)
					}
					return nil
				}
				if fiber {
					_ = coir.Run(t.Context(), receive)
				} else {
					_ = receive(t.Context(), nil)
				}
				<-sender
			}
		}
	})
}

// A batch costs no allocation, whether it waits or not.
func TestRecvBatchAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("race builds allocate")
	}
	if hidesNothing() {
		t.Skip("in this build to find out who waits allocates")
	}
	c, into := coir.NewChan[int](8), make([]int, 4)
	err := coir.Run(t.Context(), func(ctx context.Context, _ *coir.Nursery) error {
		n := testing.AllocsPerRun(100, func() {
			_, _ = c.SendMany(ctx, into[:3])
			if n, err := c.RecvBatch(ctx, into, time.Microsecond); n != 3 || err != nil {
				t.Errorf("RecvBatch returned %d, %v, want 3, nil", n, err)
			}
		})
		if n != 0 {
			t.Errorf("%v allocations", n)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
