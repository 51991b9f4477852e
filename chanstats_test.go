package coir_test

// The counters of a channel. A script does everything that can happen to a channel, once for each kind of caller. After
// each line all counters are checked: only the counter named by the line has changed.

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
)

// intSize is the size of an int in bytes.
const intSize = strconv.IntSize / 8

// Spec: CH-22 (Try never waits and changes nothing)
// Spec: CH-23 (a deadline ends a wait with ErrTimeout)
// Spec: CH-24 (a cancelled wait tells the cause)
// Spec: OB-02 (successful operations are counted)
// Spec: OB-03 (failures are counted by kind)
// Spec: OB-04 (totals count successes alone)
// Spec: OB-05 (a channel tells its marks and waiters)
func TestCountersAreExact(t *testing.T) {
	for _, as := range callerKinds {
		t.Run(as.String(), func(t *testing.T) {
			s := newStage(t, on(t, coir.WithWorkers(2)), row{kind: kinds[1], sender: as, receiver: as})
			c := coir.NewChan[[3]byte](2, coir.WithName("counted"))
			want := coir.ChanStats{Name: "counted", Cap: 2}
			does := func(op func(ctx context.Context) error, err error) {
				t.Helper()
				s.allEnded([]*player{s.start(as, func(ctx context.Context, a *player) { a.err = op(ctx) })}, err)
			}
			counts := func(what string, change func()) {
				t.Helper()
				change()
				want.SentBytes = 3 * want.Sent
				if st := c.Stats(); st != want {
					t.Fatalf("%s: the channel counts\n%+v, want\n%+v", what, st, want)
				}
			}
			send := func(ctx context.Context) error { return c.Send(ctx, [3]byte{}) }
			sendTimeout := func(ctx context.Context) error { return c.SendTimeout(ctx, [3]byte{}, time.Microsecond) }
			recv := func(ctx context.Context) error { _, err := c.Recv(ctx); return err }
			recvTimeout := func(ctx context.Context) error { _, err := c.RecvTimeout(ctx, time.Microsecond); return err }
			try := func(context.Context) error { return c.TrySend([3]byte{}) }
			tryRecv := func(context.Context) error { _, err := c.TryRecv(); return err }

			counts("new", func() {})
			does(tryRecv, coir.ErrWouldBlock)
			counts("empty, tried", func() { want.Recv.WouldBlock++ })
			does(recvTimeout, coir.ErrTimeout)
			counts("empty, timed out", func() { want.Recv.TimedOut++ })

			r := s.start(as, func(ctx context.Context, a *player) { a.err = recv(ctx) })
			s.until("it waits", func() bool { return c.Stats().Recv.Waiting == 1 })
			counts("a receiver waits", func() { want.Recv.Waiting = 1 })
			does(send, nil)
			s.allEnded([]*player{r}, nil)
			counts("from hand to hand", func() { want.Recv.Waiting, want.Sent, want.Received = 0, 1, 1 })

			r = s.start(as, func(ctx context.Context, a *player) { a.err = recv(ctx) })
			s.until("it waits", func() bool { return c.Stats().Recv.Waiting == 1 })
			r.cancel(errWhy)
			s.allEnded([]*player{r}, cancelFor{errWhy})
			counts("a receiver is cancelled", func() { want.Recv.Cancelled++ })

			does(send, nil)
			counts("one is kept", func() { want.Sent, want.Len, want.High = 2, 1, 1 })
			does(try, nil)
			counts("two are kept", func() { want.Sent, want.Len, want.High = 3, 2, 2 })
			does(try, coir.ErrWouldBlock)
			counts("full, tried", func() { want.Send.WouldBlock++ })
			does(sendTimeout, coir.ErrTimeout)
			counts("full, timed out", func() { want.Send.TimedOut++ })

			first := s.start(as, func(ctx context.Context, a *player) { a.err = send(ctx) })
			s.until("it waits", func() bool { return c.Stats().Send.Waiting == 1 })
			second := s.start(as, func(ctx context.Context, a *player) { a.err = send(ctx) })
			s.until("it waits", func() bool { return c.Stats().Send.Waiting == 2 })
			counts("two senders wait", func() { want.Send.Waiting = 2 })
			second.cancel(errWhy)
			s.allEnded([]*player{second}, cancelFor{errWhy})
			counts("a sender is cancelled", func() { want.Send.Waiting = 1; want.Send.Cancelled++ })
			does(recv, nil)
			s.allEnded([]*player{first}, nil)
			counts("the other moves in", func() { want.Send.Waiting, want.Sent, want.Received = 0, 4, 2 })

			does(func(ctx context.Context) error {
				ctx, cancel := context.WithCancelCause(ctx)
				cancel(errWhy)
				return errors.Join(send(ctx), recv(ctx))
			}, cancelFor{errWhy})
			counts("a context that is over", func() { want.Send.Cancelled++; want.Recv.Cancelled++ })

			does(tryRecv, nil)
			counts("one is left", func() { want.Received, want.Len = 3, 1 })
			c.Close()
			counts("closed", func() { want.Closed = true })
			does(send, coir.ErrClosed)
			does(try, coir.ErrClosed)
			does(sendTimeout, coir.ErrClosed)
			counts("refused", func() { want.Send.Closed += 3 })
			does(recv, nil)
			counts("the last", func() { want.Received, want.Len = 4, 0 })
			does(recv, coir.ErrClosed)
			does(tryRecv, coir.ErrClosed)
			does(recvTimeout, coir.ErrClosed)
			counts("nothing left", func() { want.Recv.Closed += 3 })
		})
	}
}

// An operation that returns ErrTimeout is counted as timed out, whether the deadline was its own, that of a scope of
// coir, or that of a context, and whether it waited or came too late.
//
// Spec: OB-03 (failures are counted by kind)
func TestDeadlinesAreCountedAsSuch(t *testing.T) {
	deadlines := map[string]func(context.Context, time.Duration) (context.Context, context.CancelFunc){
		"scope":   coir.WithTimeout,
		"context": context.WithTimeout,
	}
	for name, with := range deadlines {
		for _, as := range callerKinds {
			t.Run(name+" of a "+as.String(), func(t *testing.T) {
				s := newStage(t, on(t, coir.WithWorkers(2)), row{kind: kinds[0], sender: as, receiver: as})
				a := s.start(as, func(ctx context.Context, a *player) {
					ctx, cancel := with(ctx, time.Millisecond)
					defer cancel()
					_, waited := s.c.Recv(ctx)
					_, late := s.c.Recv(ctx)
					a.err = all(coir.ErrTimeout, waited, late, s.c.Send(ctx, 1))
				})
				s.allEnded([]*player{a}, nil)
				if st := s.c.Stats(); st.Recv != (coir.SideStats{TimedOut: 2}) || st.Send != (coir.SideStats{TimedOut: 1}) {
					t.Errorf("receives %+v, sends %+v, want TimedOut 2 and 1, and no more", st.Recv, st.Send)
				}
			})
		}
	}
}

// peekContext calls peek whenever it is asked how it has ended.
type peekContext struct {
	context.Context
	peek func()
}

func (c peekContext) Err() error {
	err := c.Context.Err()
	if err != nil {
		c.peek()
	}
	return err
}

// Counters never go back: a wait under a context of another package is counted once, after the context has said how it
// ended.
//
// Spec: OB-03 (failures are counted by kind)
func TestAWaitIsCountedOnce(t *testing.T) {
	for _, as := range callerKinds {
		t.Run(as.String(), func(t *testing.T) {
			s := newStage(t, on(t, coir.WithWorkers(2)), row{kind: kinds[0], sender: as, receiver: as})
			var mu sync.Mutex
			var seen []coir.SideStats
			a := s.start(as, func(ctx context.Context, a *player) {
				ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
				defer cancel()
				_, a.err = s.c.Recv(peekContext{ctx, func() {
					mu.Lock()
					defer mu.Unlock()
					seen = append(seen, s.c.Stats().Recv)
				}})
			})
			s.allEnded([]*player{a}, coir.ErrTimeout)
			mu.Lock()
			defer mu.Unlock()
			for i, st := range seen {
				if i == 0 && st.TimedOut > 0 || st.Cancelled > 0 {
					t.Errorf("at call %d of Err the channel counts %+v; want nothing, and later TimedOut alone", i, st)
				}
			}
			if st := s.c.Stats().Recv; len(seen) == 0 || st != (coir.SideStats{TimedOut: 1}) {
				t.Errorf("after %d calls of Err the channel counts %+v, want TimedOut 1 alone", len(seen), st)
			}
		})
	}
}

// A channel with WithTiming records the times of its first and its last operation, and how long the oldest waiter has
// waited. Other channels do not read the clock.
//
// Spec: OB-05 (a channel tells its marks and waiters)
func TestTimed(t *testing.T) {
	claimInTime(t, func(r row) bool { return r.over == coir.OverflowWait }, func(s *stage) {
		c, untimed := s.channel(coir.WithTiming()), s.c
		if st := c.Stats(); !st.First.IsZero() || !st.Last.IsZero() {
			s.t.Fatalf("nothing has happened, but %+v", st)
		}
		const slack = time.Millisecond // First and Last are dates, computed again from the clock
		begun := time.Now()
		first := s.recv(c)
		s.until("a receiver waits", func() bool { return c.Stats().Recv.Oldest > 0 })
		began := c.Stats().Recv.Oldest
		second := s.recv(c)
		s.until("another waits, and the first for longer", func() bool {
			st := c.Stats()
			return st.Recv.Waiting == 2 && st.Recv.Oldest > began
		})
		if st := c.Stats(); st.Recv.Oldest > time.Since(begun)+slack || st.Send.Oldest != 0 || !st.First.IsZero() {
			s.t.Fatalf("after %v: %+v", time.Since(begun), st)
		}
		between := func(what string, at, from time.Time) {
			s.t.Helper()
			if at.Before(from.Add(-slack)) || at.After(time.Now().Add(slack)) {
				s.t.Fatalf("%s was at %v, and not from %v to %v", what, at, from, time.Now())
			}
		}
		s.allEnded([]*player{s.send(c, 1), first}, nil)
		st := c.Stats()
		between("the first operation", st.First, begun)
		between("the last operation", st.Last, begun)
		if d := st.Last.Sub(st.First); d != 0 {
			s.t.Fatalf("one operation was from %v to %v", st.First, st.Last)
		}
		now := time.Now()
		s.until("the clock goes on", func() bool { return time.Since(now) > 0 })
		s.allEnded([]*player{s.send(c, 1), second}, nil)
		st = c.Stats()
		between("the first operation", st.First, begun)
		between("the last operation", st.Last, now)
		if !st.Last.After(st.First) || st.Recv.Oldest != 0 {
			s.t.Fatalf("after two operations: %+v", st)
		}

		a := s.recv(untimed)
		s.until("a receiver waits", func() bool { return untimed.Stats().Recv.Waiting == 1 })
		s.allEnded([]*player{s.send(untimed, 1), a}, nil)
		if st := untimed.Stats(); !st.First.IsZero() || !st.Last.IsZero() || st.Recv.Oldest != 0 {
			s.t.Fatalf("a channel without WithTiming tells times: %+v", st)
		}
	})
}

// Stats are all of one moment: whenever they are read, each sent value is received, dropped or held.
//
// Spec: OB-14 (a snapshot is consistent for each object)
// Spec: CH-42 (closed and count are one state)
func TestStatsAreOfOneMoment(t *testing.T) {
	n := sized(100, 1_000, 50_000)
	claim(t, everyRow, func(s *stage) {
		n := s.atMost(n)
		sender := s.start(s.sender, func(ctx context.Context, _ *player) {
			for i := range n {
				_ = s.c.Send(ctx, i)
			}
			s.c.Close()
		})
		receiver := s.start(s.receiver, func(ctx context.Context, _ *player) {
			for _, err := range s.c.All(ctx) {
				if err != nil {
					return
				}
			}
		})
		for over := false; !over; {
			over = receiver.done.given()
			st := s.c.Stats()
			if st.Sent != st.Received+st.Dropped+uint64(st.Len) || st.SentBytes != intSize*st.Sent ||
				st.Len > st.High || st.High > st.Cap {
				s.t.Fatalf("Stats() = %+v, want Sent = Received + Dropped + Len, SentBytes = size * Sent, Len <= High <= Cap", st)
			}
		}
		s.allEnded([]*player{sender, receiver}, nil)
	})
}

// fmt prints a short description of the objects that a program holds.
func TestDescriptions(t *testing.T) {
	describe := func(what fmt.Stringer, want string) {
		t.Helper()
		for _, verb := range []string{"%v", "%+v", "%s"} {
			if got := fmt.Sprintf(verb, what); !regexp.MustCompile("^" + want + "$").MatchString(got) {
				t.Errorf("%s: %s; want %s", verb, got, want)
			}
		}
	}
	clock := coir.NewClock()
	rt := on(t, coir.WithWorkers(2), coir.WithClock(clock))
	describe(rt, `coir.Runtime\(runs: 0\)`)
	if err := rt.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		orders := coir.NewChan[int](4, coir.WithName("orders"))
		describe(orders, `coir.Chan\[int\]\(orders, 0 of 4\)`)
		_ = orders.TrySend(1)
		orders.Close()
		describe(orders, `coir.Chan\[int\]\(orders, 1 of 4, closed\)`)
		orders.Abort(nil)
		describe(orders, `coir.Chan\[int\]\(orders, 0 of 4, aborted\)`)
		describe(coir.NewChan[error](coir.Unbounded), `coir.Chan\[error\]\(#\d+, 0 of any number\)`)

		w, r := coir.Pipe[string](2, coir.WithName("words"))
		_ = w.TrySend("x")
		r2 := r.Clone()
		r2.Close()
		describe(w, `coir.Writer\[string\]\(words, 1 of 2\)`)
		describe(r, `coir.Reader\[string\]\(words, 1 of 2\)`)
		describe(r2, `coir.Reader\[string\]\(words, 1 of 2, this end closed\)`)

		p := coir.NewPool(3, func(context.Context) (*int, error) { return new(int), nil }, nil, coir.WithName("conns"))
		v, _ := p.Get(ctx)
		_, _ = p.Get(ctx)
		_ = p.Put(v)
		describe(p, `coir.Pool\[\*int\]\(conns, 1 of 3 lent, 1 idle\)`)
		p.Close()
		describe(p, `coir.Pool\[\*int\]\(conns, 1 of 3 lent, 0 idle, closed\)`)

		o := coir.NewOrdered[int](8, coir.WithName("results"))
		_ = o.Go(ctx, n, "task", func(context.Context) (int, error) { return 1, nil })
		describe(o, `coir.Ordered\[int\]\(results, 1 of 8\)`)
		_, _ = o.Recv(ctx)

		s := coir.NewSelector()
		s.Add(coir.After(time.Hour))
		describe(s, `coir.Selector\(cases: 1\)`)
		s.Clear()

		gate := coir.NewChan[int](0)
		f := n.Go("waits", func(ctx context.Context) error { _, _ = gate.Recv(ctx); return nil }, coir.WithIndex(3))
		yieldUntil(ctx, t, "the fiber waits", func() bool { return f.State() == coir.StateWaiting })
		describe(f, `coir.Fiber\(waits\[3\], #\d+, waiting\)`)
		gate.Close()
		_ = f.Wait(ctx)
		describe(f, `coir.Fiber\(waits\[3\], #\d+, ended\)`)
		describe(coir.Self(ctx), `coir.Fiber\(main, #\d+, active\)`)
		describe(n, `coir.Nursery\(of main, fibers: \d+\)`)
		clock.Advance(time.Minute)
		describe(clock, `coir.Clock\(1m0s\)`)
		describe(rt, `coir.Runtime\(runs: 1\)`)
		return nil
	}); err != nil {
		t.Error(err)
	}
	for _, none := range []fmt.Stringer{
		(*coir.Fiber)(nil), (*coir.Chan[int])(nil), (*coir.Nursery)(nil), (*coir.Selector)(nil), (*coir.Pool[int])(nil),
		(*coir.Ordered[int])(nil), (*coir.Writer[int])(nil), (*coir.Reader[int])(nil), (*coir.Runtime)(nil),
	} {
		describe(none, `<nil>`)
	}
}

// All objects are printed again and again while they are used. A race build must report nothing.
func TestDescriptionsOfWhatIsInUse(t *testing.T) {
	const rounds = 200
	crews(t, func(t *testing.T, c *crew) {
		w, r := coir.Pipe[int](1)
		p := coir.NewPool(2, func(context.Context) (int, error) { return 1, nil }, nil)
		s, o := coir.NewSelector(), coir.NewOrdered[int](2)
		clock, ch := coir.NewClock(), coir.NewChan[int](1)
		var done atomic.Bool
		c.do(func(ctx context.Context) {
			defer done.Store(true)
			for i := range rounds {
				id := s.Add(ch.RecvCase(nil))
				_ = ch.TrySend(i)
				_, _ = s.Wait(ctx)
				s.Remove(id)
				_ = w.TrySend(i)
				_, _ = r.TryRecv()
				v, _ := p.Get(ctx)
				_ = p.Put(v)
				_ = o.Go(ctx, c.n, "task", func(context.Context) (int, error) { return i, nil })
				_, _ = o.Recv(ctx)
				clock.Advance(time.Second)
				_ = coir.Yield(ctx)
			}
			w.Close()
			r.Close()
			p.Close()
			ch.Close()
		})
		c.do(func(ctx context.Context) {
			for !done.Load() {
				for _, x := range []any{w, r, p, s, o, clock, ch, c.n, coir.Self(ctx), ctx} {
					if text := fmt.Sprintf("%v", x); len(text) > 200 {
						t.Errorf("%T: %s", x, text)
					}
				}
				_ = coir.Yield(ctx)
			}
		})
	})
}
