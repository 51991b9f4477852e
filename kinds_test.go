package coir_test

// Properties of single kinds of channels and single policies: what they keep, what they drop, how much memory they use,
// and the panics for kinds that do not exist. conform_test.go tests what all kinds share.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
)

// Spec: CH-01 (one channel type, four kinds)
// Spec: CH-06 (a bounded channel holds its capacity)
func TestCapacityOfEachKind(t *testing.T) {
	caps := map[int]int{0: 0, 1: 1, 7: 7, coir.Unbounded: math.MaxInt, coir.Conflated: 1}
	for _, k := range kinds {
		for _, over := range policies {
			if !(row{kind: k, over: over}).exists() {
				continue
			}
			c := coir.NewChan[string](k.capacity, coir.WithName(k.name), coir.WithOverflow(over))
			if c.Cap() != caps[k.capacity] || c.Name() != k.name || c.Len() != 0 {
				t.Errorf("%s, %v: Cap %d, Name %q, Len %d", k.name, over, c.Cap(), c.Name(), c.Len())
			}
			if st := c.Stats(); st != (coir.ChanStats{Name: k.name, Cap: caps[k.capacity]}) {
				t.Errorf("%s, %v: %+v", k.name, over, st)
			}
		}
	}
}

// What a policy does when a channel is full is the same for every form of send and every kind of caller. A send never
// waits.
//
// Spec: CH-12 (a conflated send never waits)
// Spec: CH-14 (conflated is bounded 1 that drops the oldest)
// Spec: CH-17 (the overflow policy decides a full send)
// Spec: CH-18 (dropped values are counted and handed over)
// Spec: CH-40 (no value is lost silently)
// Spec: CH-58 (a failing overflow is ErrWouldBlock)
func TestOverflow(t *testing.T) {
	claim(t, func(r row) bool { return !r.waits() && r.capacity != coir.Unbounded }, func(s *stage) {
		held := s.fill()
		over := s.over
		if s.capacity == coir.Conflated {
			over = coir.OverflowDropOldest // whatever was given
		}
		ways := []func(ctx context.Context, v int) error{
			func(ctx context.Context, v int) error { return s.c.Send(ctx, v) },
			func(ctx context.Context, v int) error { return s.c.SendTimeout(ctx, v, time.Hour) },
			func(ctx context.Context, v int) error { return s.c.SendTimeout(ctx, v, 0) },
			func(_ context.Context, v int) error { return s.c.TrySend(v) },
			func(ctx context.Context, v int) error { _, err := s.c.SendMany(ctx, []int{v}); return err },
			func(ctx context.Context, v int) error { _, err := coir.Select(ctx, s.c.SendCase(v)); return err },
			func(_ context.Context, v int) error { _, err := coir.TrySelect(s.c.SendCase(v)); return err },
		}
		want := s.c.Stats()
		for i, send := range ways {
			v := 100 + i
			a := s.start(s.sender, func(ctx context.Context, a *player) { a.err = send(ctx, v) })
			if over == coir.OverflowFail {
				s.allEnded([]*player{a}, coir.ErrWouldBlock)
				s.loses()
				want.Send.WouldBlock++
			} else {
				s.allEnded([]*player{a}, nil)
				lost := v
				if over == coir.OverflowDropOldest && len(held) > 0 {
					lost, held = held[0], append(held[1:], v)
				}
				s.loses(lost)
				want.Sent++
				want.SentBytes += intSize
				want.Dropped++
			}
			if st := s.c.Stats(); st != want {
				s.t.Fatalf("way %d: the channel counts %+v, want %+v", i, st, want)
			}
		}
		s.drain(held, coir.ErrWouldBlock)
	})
}

// A channel that drops passes a value to a waiting receiver, and drops nothing while there is room.
//
// Spec: CH-09 (a send prefers a waiting receiver)
func TestOverflowIsForFullChannels(t *testing.T) {
	claim(t, func(r row) bool { return !r.waits() }, func(s *stage) {
		a := s.receiversInLine(1)[0]
		s.allEnded([]*player{s.send(s.c, 50)}, nil)
		s.allEnded([]*player{a}, nil)
		if a.v != 50 {
			s.t.Fatalf("received %d, want 50", a.v)
		}
		held := s.fill()
		s.loses()
		s.drain(held, coir.ErrWouldBlock)
	})
}

// A conflated channel is a bounded one of capacity 1 that drops the oldest: after any history both have returned the
// same and counted the same. A receive takes the newest value, and leaves the channel empty.
//
// Spec: CH-12 (a conflated send never waits)
// Spec: CH-13 (a conflated receive empties the channel)
// Spec: CH-14 (conflated is bounded 1 that drops the oldest)
func TestConflatedIsOneThatDropsTheOldest(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range sized(20, 100, 5_000) {
		var lost [2][]int
		pair := [2]*coir.Chan[int]{
			coir.NewChan[int](coir.Conflated, coir.OnUndelivered(func(v int) { lost[0] = append(lost[0], v) })),
			coir.NewChan[int](1, coir.WithOverflow(coir.OverflowDropOldest),
				coir.OnUndelivered(func(v int) { lost[1] = append(lost[1], v) })),
		}
		newest, full := 0, false
		for i := range 50 {
			op := random.IntN(20)
			var did [2]string
			for k, c := range pair {
				switch {
				case op < 11:
					did[k] = fmt.Sprint(c.Send(t.Context(), i))
				case op < 18:
					v, err := c.TryRecv()
					did[k] = fmt.Sprint(v, err)
					if k == 0 && full && (v != newest || err != nil || c.Len() != 0) {
						t.Fatalf("received %d, %v and %d are left; the newest was %d", v, err, c.Len(), newest)
					}
				case op == 18 && i > 40:
					did[k] = fmt.Sprint(c.Close())
				case op == 19 && i > 40:
					did[k] = fmt.Sprint(c.Abort(nil))
				}
			}
			full = pair[0].Len() == 1
			if op < 11 && full {
				newest = i
			}
			if did[0] != did[1] || !slices.Equal(lost[0], lost[1]) || pair[0].Stats() != pair[1].Stats() {
				t.Fatalf("operation %d: conflated %q, lost %v, %+v\nbounded %q, lost %v, %+v",
					i, did[0], lost[0], pair[0].Stats(), did[1], lost[1], pair[1].Stats())
			}
			if pair[0].Stats().Closed {
				break // newest is not tracked further
			}
		}
	}
}

// An unbounded channel accepts every value, and releases the memory once it has been received.
//
// Spec: CH-15 (an unbounded send never waits)
// Spec: CH-16 (an unbounded channel gives memory back)
func TestUnboundedGivesItsMemoryBack(t *testing.T) {
	n := sized(500_000, 1_000_000, 5_000_000)
	c := coir.NewChan[[4]uint64](coir.Unbounded)
	const noise = 1 << 20 // other allocations meanwhile; the values take at least 16 MiB, but not in race builds
	before := heap()
	for i := range n {
		if err := c.TrySend([4]uint64{uint64(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if c.Len() != n || c.Stats().High != n {
		t.Fatalf("it holds %d of %d", c.Len(), n)
	}
	full := heap()
	for i := range n {
		if v, err := c.TryRecv(); err != nil || v[0] != uint64(i) {
			t.Fatalf("received %v, %v; want %d", v, err, i)
		}
		if i == n/2 {
			if half := heap(); half-before > (full-before)*6/10+noise {
				t.Errorf("with half of it received %d of %d bytes are in use", half-before, full-before)
			}
		}
	}
	if after := heap(); after-before > noise {
		t.Errorf("of %d bytes %d are still in use", full-before, after-before)
	}
	runtime.KeepAlive(c)
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// The handler of OnUndelivered may use the channel: it is called without the lock.
//
// Spec: CH-18 (dropped values are counted and handed over)
// Spec: CH-37 (abort is the hard close)
func TestUndeliveredMayUseTheChannel(t *testing.T) {
	for _, as := range callerKinds {
		t.Run(as.String(), func(t *testing.T) {
			s := newStage(t, on(t, coir.WithWorkers(2)), row{kind: kinds[1], sender: as, receiver: as})
			var c *coir.Chan[int]
			var lost []int
			c = coir.NewChan[int](2, coir.WithOverflow(coir.OverflowDropOldest), coir.OnUndelivered(func(v int) {
				lost = append(lost, v, c.Len(), int(c.Stats().Dropped))
				_ = c.Close()
				_ = c.TrySend(v)
				_, _ = c.TryRecv()
			}))
			a := s.start(as, func(ctx context.Context, a *player) {
				for v := range 3 {
					a.err = errors.Join(a.err, c.Send(ctx, v)) // the third drops the first, and the handler ends c
				}
				c.Abort(nil)
			})
			s.allEnded([]*player{a}, nil)
			if want := []int{0, 2, 1, 2, 0, 2}; !slices.Equal(lost, want) {
				t.Errorf("values, lengths and drops %v, want %v", lost, want)
			}
		})
	}
}

// A channel without OnUndelivered, or with a nil one, still drops and counts.
//
// Spec: CH-17 (the overflow policy decides a full send)
// Spec: CH-18 (dropped values are counted and handed over)
func TestDropsWithoutAHandler(t *testing.T) {
	for _, opts := range [][]coir.ChanOption{nil, {coir.OnUndelivered[int](nil)}} {
		c := coir.NewChan[int](coir.Conflated, opts...)
		for v := range 3 {
			if err := c.TrySend(v); err != nil {
				t.Fatal(err)
			}
		}
		c.Abort(nil)
		if st := c.Stats(); st.Dropped != 3 {
			t.Errorf("c.Stats() = %+v, want Dropped 3", st)
		}
	}
}

func TestPoliciesHaveNames(t *testing.T) {
	var names []string
	for _, p := range policies {
		names = append(names, p.String())
	}
	if got := strings.Join(names, ", "); got != "wait, drop oldest, drop newest, fail" {
		t.Error(got)
	}
}

// A handler that panics, or exits, for some of the values is still called with all the others, in order. Then the first
// panic continues, with the stack of the handler.
//
// Spec: CH-40 (no value is lost silently)
func TestHandlerThatPanicsLosesNothing(t *testing.T) {
	const values = 5
	ends := []struct {
		name string
		end  func(handle coir.ChanOption) func() // fills something with 0, 1, ...; the result hands it over
	}{
		{"Chan.Abort", func(handle coir.ChanOption) func() {
			c := coir.NewChan[int](values, handle)
			for i := range values {
				_ = c.TrySend(i)
			}
			return func() { c.Abort(nil) }
		}},
		{"Chan.Abort after Close", func(handle coir.ChanOption) func() {
			c := coir.NewChan[int](coir.Unbounded, handle)
			for i := range values {
				_ = c.TrySend(i)
			}
			c.Close()
			return func() { c.Abort(nil) }
		}},
		{"Reader.Close", func(handle coir.ChanOption) func() {
			w, r := coir.Pipe[int](values, handle)
			for i := range values {
				_ = w.TrySend(i)
			}
			return func() { r.Close() }
		}},
		{"Pool.Close", func(handle coir.ChanOption) func() {
			made := -1
			p := coir.NewPool(values, func(context.Context) (int, error) { made++; return made, nil }, nil, handle)
			var lent []int
			for range values {
				v, _ := p.Get(context.Background())
				lent = append(lent, v)
			}
			for _, v := range lent {
				_ = p.Put(v)
			}
			return func() { p.Close() }
		}},
	}
	for _, how := range []string{"panic", "Goexit"} {
		for bad := range 1 << values { // the set of values for which the handler does not return
			for _, x := range ends {
				var given []int
				close := x.end(coir.OnUndelivered(func(v int) {
					given = append(given, v)
					switch {
					case bad>>v&1 == 0:
					case how == "panic":
						explodesDeepInside(v)
					default:
						runtime.Goexit()
					}
				}))
				var out any
				var stack string
				returned := false
				<-goes(func() {
					defer func() {
						if out = recover(); out != nil {
							stack = string(debug.Stack())
						}
					}()
					close()
					returned = true
				})
				want := any(nil)
				if how == "panic" && bad != 0 {
					want = bits.TrailingZeros(uint(bad))
				}
				if out != want || returned != (bad == 0) {
					t.Errorf("%s, %s for %05b: %v came out, returned %v; want %v",
						x.name, how, bad, out, returned, want)
				}
				if want != nil && !strings.Contains(stack, "explodesDeepInside") {
					t.Errorf("%s, %s for %05b: the stack does not show the handler:\n%s", x.name, how, bad, stack)
				}
				if !slices.Equal(given, []int{0, 1, 2, 3, 4}) {
					t.Errorf("%s, %s for %05b: handed over %v", x.name, how, bad, given)
				}
			}
		}
	}
}

// Wrong use panics with a text that says what is right.
func TestWrongUseSaysWhatIsRight(t *testing.T) {
	for _, x := range []struct {
		use  func()
		says []string
	}{
		{func() { coir.NewChan[int](-3) }, []string{"NewChan(-3)", "0 or more", "coir.Unbounded", "coir.Conflated"}},
		{func() { coir.NewChan[int](math.MinInt) }, []string{"NewChan(", "0 or more"}},
		{
			func() { coir.NewChan[int](1, coir.OnUndelivered(func(string) {})) },
			[]string{"OnUndelivered", "given a func(string)", "needs a func(int)"},
		},
		{func() { coir.WithOverflow(coir.OverflowFail + 1) }, []string{"Overflow", "no such policy"}},
		{
			func() { coir.NewChan[int](coir.Conflated, coir.WithOverflow(coir.OverflowFail)) },
			[]string{"NewChan(coir.Conflated)", `"fail"`, "a capacity of 1"},
		},
		{
			func() { coir.Pipe[int](coir.Conflated, coir.WithOverflow(coir.OverflowDropNewest)) },
			[]string{"NewChan(coir.Conflated)", `"drop newest"`, "a capacity of 1"},
		},
		{func() { coir.NewPool[int](1, nil, nil) }, []string{"NewPool", "a function that makes values"}},
		{
			func() {
				create := func(context.Context) (int, error) { return 1, nil }
				coir.NewPool(1, create, nil, coir.WithOverflow(coir.OverflowDropOldest))
			},
			[]string{"NewPool", "WithOverflow is not allowed"},
		},
	} {
		func() {
			defer func() {
				text := fmt.Sprint(recover())
				for _, part := range append(x.says, "coir: ") {
					if !strings.Contains(text, part) {
						t.Errorf("the panic %q does not say %q", text, part)
					}
				}
			}()
			x.use()
		}()
	}
}

// Values of every shape pass on every path: directly, with either side first, and through a buffer.
//
// Spec: CH-01 (one channel type, four kinds)
// Spec: CH-09 (a send prefers a waiting receiver)
func TestValuesOfManyShapes(t *testing.T) {
	type record struct {
		name string
		next *record
		tags []string
		n    int8
	}
	one := &record{name: "one", tags: []string{"a"}, n: -1}
	var large [4096]byte
	large[0], large[4095] = 1, 2
	claim(t, nothingDrops, func(s *stage) {
		shape(s, 1, -5, math.MaxInt)
		shape(s, true, false)
		shape(s, "", "x", strings.Repeat("long", 1000))
		shape(s, struct{}{}, struct{}{})
		shape(s, [0]int{}, [0]int{})
		shape(s, large, [4096]byte{}, large)
		shape[any](s, nil, 1, "x", one, 2.5, struct{}{})
		shape[error](s, nil, errWhy, coir.ErrTimeout)
		shape(s, one, nil, &record{next: one})
		shape(s, [3]*record{one, nil, one}, [3]*record{})
		shape(s, struct {
			a byte
			b any
			c *record
		}{1, "b", one})
		shape(s, float32(1.5), 0)
		shape(s, complex(1, 2))
		shape(s, make(chan int), nil)
	})
}

// shape passes the values on each path.
func shape[T comparable](s *stage, values ...T) {
	s.t.Helper()
	c := coir.NewChan[T](s.capacity, coir.WithOverflow(s.over))
	var got []T
	receive := func(ctx context.Context, a *player) {
		for range values {
			v, err := c.Recv(ctx)
			if err != nil {
				a.err = err
				return
			}
			got = append(got, v)
		}
	}
	send := func(ctx context.Context, a *player) {
		for _, v := range values {
			for a.err = c.Send(ctx, v); errors.Is(a.err, coir.ErrWouldBlock); a.err = c.Send(ctx, v) {
				s.giveWay(ctx)
			}
			if a.err != nil {
				return
			}
		}
	}
	for _, receiverFirst := range []bool{true, false} {
		got = nil
		var sender, receiver *player
		if receiverFirst {
			receiver = s.start(s.receiver, receive)
			s.until("the receiver waits", func() bool { return c.Stats().Recv.Waiting == 1 })
			sender = s.start(s.sender, send)
		} else {
			sender = s.start(s.sender, send)
			s.until("the sender has begun", func() bool {
				st := c.Stats()
				return st.Send.Waiting+st.Len > 0 || st.Send.WouldBlock > 0
			})
			receiver = s.start(s.receiver, receive)
		}
		s.allEnded([]*player{sender, receiver}, nil)
		if !slices.Equal(got, values) {
			s.t.Fatalf("%T: received %v, want %v", values, got, values)
		}
	}
}

// However fast values come, a receiver gets the last one that was sent to a conflated channel.
//
// Spec: CH-12 (a conflated send never waits)
// Spec: CH-35 (close is graceful)
func TestConflatedDeliversTheLast(t *testing.T) {
	n := sized(100, 1_000, 50_000)
	claim(t, func(r row) bool { return r.capacity == coir.Conflated }, func(s *stage) {
		n := s.atMost(n)
		var last atomic.Int64
		sender := s.start(s.sender, func(ctx context.Context, a *player) {
			for i := range n {
				a.err = errors.Join(a.err, s.c.Send(ctx, i))
			}
			s.c.Close()
		})
		receiver := s.start(s.receiver, func(ctx context.Context, _ *player) {
			for v, err := range s.c.All(ctx) {
				if err != nil {
					return
				}
				last.Store(int64(v))
			}
		})
		s.allEnded([]*player{sender, receiver}, nil)
		if last.Load() != int64(n-1) {
			s.t.Fatalf("the last value received is %d of %d", last.Load(), n)
		}
	})
}
