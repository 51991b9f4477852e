package sim

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/search"
	"github.com/coir-go/coir/internal/soak"
)

// The simulation promises this: it runs all schedules and none twice, its clock costs only the steps, it handles many
// fibers, it is fast enough to run thousands of schedules, and it reports the kind and the place of each failure.

// idle starts fibers that only yield.
func idle(fibers, yields int) program {
	return func(ctx context.Context, _ *Sim) {
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			for i := range fibers {
				n.Go("idle", func(ctx context.Context) error {
					for range yields {
						if err := coir.Yield(ctx); err != nil {
							return err
						}
					}
					return nil
				}, coir.WithIndex(i))
			}
		})
	}
}

// orders counts the orders of n moves in which each pair {a, b} has a before b. It checks the arithmetic of
// TestExhaustiveCounts, and is used where there is no formula.
func orders(n int, before ...[2]int) int {
	needs := make([]int, n)
	for _, p := range before {
		needs[p[1]] |= 1 << p[0]
	}
	ways := make([]int, 1<<n) // to have done a set of moves
	ways[0] = 1
	for done, w := range ways {
		for m := range n {
			if done>>m&1 == 0 && needs[m]&^done == 0 {
				ways[done|1<<m] += w
			}
		}
	}
	return ways[1<<n-1]
}

// chain returns the moves from first to last, each before the next.
func chain(first, last int) (pairs [][2]int) {
	for m := first; m < last; m++ {
		pairs = append(pairs, [2]int{m, m + 1})
	}
	return pairs
}

// visited is a strategy that counts how many different schedules another one has made.
type visited struct {
	Strategy
	hash search.RNG
	all  map[search.RNG]bool
}

func (v *visited) Begin(schedule int) bool {
	if schedule > 0 {
		v.all[v.hash] = true
	}
	v.hash = 0
	return v.Strategy.Begin(schedule)
}

//go:norace
func (v *visited) Choose(p *Fork) int {
	d := v.Strategy.Choose(p)
	v.hash ^= search.RNG(p.N<<16 | d)
	v.hash = search.RNG(v.hash.Next())
	return d
}

// TestExhaustiveCounts compares the number of schedules with a computed number.
//
// A fiber moves from one stop to the next. It stops before each operation, after each that did not wait, and where it
// has been made ready: as a new fiber, and after a wait. A Yield does nothing, so there is no stop after it. So a fiber
// that yields y times has y+2 moves: it starts, yields, ends. The program itself has two moves for each Go, which are
// the Go and what follows it, and one for the join, after which it waits for all others, and is the only one left when
// it continues. A schedule is an order of all moves in which those of one fiber follow each other, and come after the
// Go that made it.
//
// The moves of programs that just start fibers make a tree, and the number of orders of a tree of n moves is n! divided
// by the product, over all moves, of how many come after it in the tree, itself included.
//
// Spec: SM-01 (a policy is told before each operation)
// Spec: SM-02 (a schedule is its decisions)
func TestExhaustiveCounts(t *testing.T) {
	unbound := func(uint64) Strategy { return Exhaustive(-1) }
	sleepers := func(second time.Duration) program {
		return func(ctx context.Context, _ *Sim) {
			nursery(ctx, func(_ context.Context, n *coir.Nursery) {
				n.Go("first", func(ctx context.Context) error { return coir.Sleep(ctx, time.Second) })
				n.Go("second", func(ctx context.Context) error { return coir.Sleep(ctx, second) })
			})
		}
	}
	sleepBeside := func(ctx context.Context, _ *Sim) {
		nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
			n.Go("sleeper", func(ctx context.Context) error { return coir.Sleep(ctx, time.Second) })
			_ = coir.Yield(ctx)
		})
	}
	// One sends and one receives, on a channel with one place. Moves: 0 to 4 are the Gos, what follows them, and the
	// join; 5 6 7 8 the sender's: start, send, what follows, end; 9 10 11 12 the receiver's: start, receive, what
	// follows, end. If the receive comes first it waits, and what follows it comes after the send.
	both := join(chain(0, 4), chain(5, 8), chain(9, 12), [][2]int{{0, 5}, {2, 9}})
	passed := orders(13, join(both, [][2]int{{6, 10}})...) + orders(13, join(both, [][2]int{{10, 6}, {6, 11}})...)

	// Two leave a pipe, the program after the Go and a fiber. The one that is not the last has, in addition to what
	// follows the Go and the join, or to its start and its end, two moves: it leaves, and what follows. The last one
	// has two more between them: it closes the channel, and what follows that. First the program is the last one, with
	// moves 0 to 5, and the fiber has 6 to 9; then the fiber is, with 4 to 9, and the program has 0 to 3.
	left := orders(10, join(chain(0, 5), chain(6, 9), [][2]int{{7, 1}})...) + orders(10, join(chain(0, 3), chain(4, 9), [][2]int{{1, 5}})...)

	for _, c := range []struct {
		name     string
		fn       program
		strategy func(uint64) Strategy
		opts     []Option
		want     int
	}{
		// 9 moves: 5 of the program, 2 of each fiber. 9! / (9 * 6 * 5 * 2 * 2! * 2!).
		{"two fibers", idle(2, 0), unbound, nil, 168},
		// 11 moves. 11! / (11 * 7 * 6 * 2 * 3! * 3!).
		{"two fibers that yield", idle(2, 1), unbound, nil, 1_200},
		// 13 moves. 13! / (13 * 8 * 7 * 2 * 4! * 4!).
		{"two fibers that yield twice", idle(2, 2), unbound, nil, 7_425},
		// 15 moves. 15! / (15 * 9 * 8 * 2 * 5! * 5!).
		{"two fibers that yield thrice", idle(2, 3), unbound, nil, 42_042},
		// 13 moves: 7 of the program, 2 of each fiber. 13! / (13 * 10 * 9 * 6 * 5 * 2 * 2! * 2! * 2!).
		{"three fibers", idle(3, 0), unbound, nil, 11_088},
		// What follows an operation is one with it: 7 moves, 3 of the program, 2 of each fiber. 7! / (7 * 4 * 2! * 2!).
		{"two fibers, operations alone", idle(2, 0), func(uint64) Strategy { return coarse{Exhaustive(-1)} }, nil, 45},
		// 9 moves: 3 of the program, 4 of the first fiber, whose second makes the second one, with 2. 9! / (9 * 2 * 6 *
		// 5 * 2 * 2!).
		{"a fiber that starts a fiber", func(ctx context.Context, _ *Sim) {
			nursery(ctx, func(_ context.Context, n *coir.Nursery) {
				n.Go("first", func(context.Context) error {
					n.Go("second", func(context.Context) error { return nil })
					return nil
				})
			})
		}, unbound, nil, 168},
		{"a send and a receive", func(ctx context.Context, _ *Sim) {
			c := coir.NewChan[int](1)
			nursery(ctx, func(_ context.Context, n *coir.Nursery) {
				n.Go("sender", func(ctx context.Context) error { return c.Send(ctx, 1) })
				n.Go("receiver", func(ctx context.Context) error {
					_, err := c.Recv(ctx)
					return err
				})
			})
		}, unbound, nil, passed},
		// 3 and 4 numbers.
		{"two numbers", func(_ context.Context, s *Sim) { s.Intn(3); s.Intn(4) }, unbound, nil, 12},
		// Three cases can happen, then two, then one.
		{"selects", func(ctx context.Context, _ *Sim) {
			cases := make([]coir.Case, 3)
			for i := range cases {
				c := coir.NewChan[int](1)
				_ = c.Send(ctx, i)
				cases[i] = c.RecvCase(nil)
			}
			for range cases {
				_, _ = coir.Select(ctx, cases...)
			}
		}, unbound, nil, 6},
		{"selects that do not wait", func(ctx context.Context, _ *Sim) {
			cases := make([]coir.Case, 3)
			for i := range cases {
				c := coir.NewChan[int](1)
				_ = c.Send(ctx, i)
				cases[i] = c.RecvCase(nil)
			}
			for range cases {
				_, _ = coir.TrySelect(cases...)
			}
		}, unbound, nil, 6},
		{"two who leave a pipe", func(ctx context.Context, _ *Sim) {
			w, _ := coir.Pipe[int](1)
			other := w.Clone()
			nursery(ctx, func(_ context.Context, n *coir.Nursery) {
				n.Go("other", func(context.Context) error { other.Close(); return nil })
				w.Close()
			})
		}, unbound, nil, left},
		// Until both sleep that is two fibers, which do nothing: 168. Then time moves, to one after the other.
		{"two that sleep", sleepers(2 * time.Second), unbound, nil, 168},
		// As before, but both wake, and each must be chosen and end: 4! / (2! * 2!) for each of the 168.
		{"two that sleep to the same time", sleepers(time.Second), unbound, nil, 168 * 6},
		// After its Go the program has 3 moves, next to the 2 of the fiber until it sleeps: 5! / (3! * 2!).
		{"one that sleeps beside one that does not", sleepBeside, unbound, nil, 10},
		// And here also next to the clock's, and the fiber's 2 after it: 8! / (3! * 5!).
		{"the same while time races", sleepBeside, unbound, []Option{WithClock(ClockRacing)}, 56},
		// The program runs until it waits; then each fiber, once begun, until it ends. 3!.
		{"three fibers and no preemption", idle(3, 1), func(uint64) Strategy { return Exhaustive(0) }, nil, 6},
		// None: 2. After the first Go or before the second, by the first fiber: 2. After the second Go or before the
		// join, by either fiber, after which the join or the other fiber comes: 2 * 2 * 2. Of the one that goes first,
		// before its end: 2.
		{"two fibers and at most one preemption", idle(2, 0), func(uint64) Strategy { return Exhaustive(1) }, nil, 14},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.want > 5_000 {
				large(t, "all of very many schedules")
			}
			v := &visited{Strategy: c.strategy(1), all: map[search.RNG]bool{}}
			res := Explore(c.fn, append(c.opts, WithStrategy(func(uint64) Strategy { return v }), WithSchedules(1_000_000))...)
			if res.Failure != nil {
				t.Fatal(res.Failure)
			}
			if !res.Complete || res.Schedules != c.want {
				t.Errorf("%d schedules, complete: %v; arithmetic gives %d", res.Schedules, res.Complete, c.want)
			}
			if len(v.all) != res.Schedules {
				t.Errorf("of %d schedules only %d are different", res.Schedules, len(v.all))
			}
		})
	}
}

func join(lists ...[][2]int) (all [][2]int) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// TestOrdersAgreesWithTheFormula checks the counting of orders by a tree: that of two fibers in TestExhaustiveCounts.
func TestOrdersAgreesWithTheFormula(t *testing.T) {
	if n := orders(9, join(chain(0, 4), chain(5, 6), chain(7, 8), [][2]int{{0, 5}, {2, 7}})...); n != 168 {
		t.Errorf("%d orders of two fibers, and the formula gives 168", n)
	}
}

// TestAYearOfVirtualTimePassesInSeconds sleeps for a second, 31,536,000 times; without soaking, for a day of it.
//
// Spec: TM-15 (time comes in through Clock alone)
// Spec: SM-04 (virtual time moves when no fiber can continue)
func TestAYearOfVirtualTimePassesInSeconds(t *testing.T) {
	seconds := sized(24*3600, 365*24*3600)
	runtime.GC()
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	before, most := mem.HeapAlloc, uint64(0)
	res := Explore(func(ctx context.Context, s *Sim) {
		for i := range seconds {
			_ = coir.Sleep(ctx, time.Second)
			if i%(seconds/50) == 0 {
				runtime.ReadMemStats(&mem)
				most = max(most, mem.HeapAlloc)
			}
		}
		if now := s.Now(); now != time.Duration(seconds)*time.Second {
			s.Errorf("it is %v, %d seconds later", now, seconds)
		}
	}, WithSchedules(1), WithSteps(2*seconds))
	if res.Failure != nil {
		t.Fatal(res.Failure.Kind, res.Failure.Text)
	}
	most -= min(before, most)
	t.Logf("%d timers in %v, in %.1f MB", seconds, res.Elapsed, float64(most)/1e6)
	if most > 100e6 {
		t.Errorf("%d bytes are more than 100 MB", most)
	}
	if soak.On() && !race.Enabled && res.Elapsed > 30*time.Second {
		t.Errorf("%v is more than 30 s", res.Elapsed)
	}
}

func TestTenThousandFibersRun(t *testing.T) {
	fibers := 10_000
	if testing.Short() {
		fibers = 3_000
	}
	for _, c := range []struct {
		name     string
		strategy func(uint64) Strategy
	}{
		{"in order", func(uint64) Strategy { return Exhaustive(0) }},
		{"random", Random},
		{"pct", func(seed uint64) Strategy { return PCT(seed, 3) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := Explore(func(ctx context.Context, s *Sim) {
				sum := 0
				values := coir.NewChan[int](0, coir.WithName("values"))
				nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
					for i := range fibers {
						n.Go("sender", func(ctx context.Context) error { return values.Send(ctx, i) }, coir.WithIndex(i))
					}
					for range fibers {
						v, _ := values.Recv(ctx)
						sum += v
					}
				})
				if sum != fibers*(fibers-1)/2 {
					s.Errorf("the sum is %d", sum)
				}
			}, WithStrategy(c.strategy), WithSchedules(1), WithSteps(10*fibers))
			if res.Failure != nil {
				t.Fatal(res.Failure.Kind, res.Failure.Text)
			}
			t.Logf("%d steps in %v", res.Steps, res.Elapsed)
		})
	}
}

// TestSpeed only logs, because the cost of a schedule depends on the machine.
func TestSpeed(t *testing.T) {
	large(t, "figures, which this build does not have")
	for _, c := range []struct {
		name     string
		strategy func(uint64) Strategy
	}{
		{"random", Random},
		{"pct", func(seed uint64) Strategy { return PCT(seed, 3) }},
		{"exhaustive", func(uint64) Strategy { return Exhaustive(-1) }},
		{"default", Default},
	} {
		res := Explore(idle(3, 2), WithStrategy(c.strategy), WithSchedules(sized(5_000, 200_000)))
		if res.Failure != nil {
			t.Fatal(res.Failure)
		}
		t.Logf("%-10s %7.0f schedules a second, of three fibers and %d steps", c.name,
			float64(res.Schedules)/res.Elapsed.Seconds(), res.Steps/res.Schedules)
	}
}

// TestAStepAllocatesNothing counts the allocations while one fiber of three yields and selects a hundred thousand
// times, and the others yield as often as the strategy lets them. The trace and the list of decisions grow, and Go's
// collector allocates: some thirty allocations in all, which is less than one for each thousand.
func TestAStepAllocatesNothing(t *testing.T) {
	if slowBuild() {
		t.Skip("allocations are counted in release builds")
	}
	for _, strategy := range []func(uint64) Strategy{Random, func(seed uint64) Strategy { return PCT(seed, 3) }} {
		per := -1.0
		res := Explore(func(ctx context.Context, _ *Sim) {
			var stop atomic.Bool
			c := coir.NewChan[int](1)
			nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
				for i := range 2 {
					n.Go("other", func(ctx context.Context) error {
						for range 100_000 {
							if stop.Load() {
								break
							}
							_ = coir.Yield(ctx)
						}
						return nil
					}, coir.WithIndex(i))
				}
				per = max(per, testing.AllocsPerRun(100, func() {
					for range 1000 {
						_ = coir.Yield(ctx)
						_, _ = coir.Select(ctx, c.SendCase(1), c.RecvCase(nil))
					}
				}))
				stop.Store(true)
			})
		}, WithStrategy(strategy), WithSchedules(1), WithSteps(5_000_000))
		if res.Failure != nil {
			t.Fatal(res.Failure.Kind, res.Failure.Text)
		}
		if per >= 10 { // the ticks of monitors may allocate too, more of them the slower the machine is
			t.Errorf("%s: %v allocations for 1,000 yields and selects", strategy(1).Name(), per)
		}
	}
}

// TestAGoroutineOutsideIsReported starts goroutines that use a channel of the simulation, even after the program's last
// operation.
//
// Spec: SM-06 (an outside goroutine is reported)
func TestAGoroutineOutsideIsReported(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(c *coir.Chan[int])
		op   string
	}{
		{"send", func(c *coir.Chan[int]) { _ = c.Send(context.Background(), 1) }, "send"},
		{"receive", func(c *coir.Chan[int]) { _, _ = c.RecvTimeout(context.Background(), time.Millisecond) }, "recv"},
		{"try send", func(c *coir.Chan[int]) { _ = c.TrySend(1) }, "try send"},
		{"try receive", func(c *coir.Chan[int]) { _, _ = c.TryRecv() }, "try recv"},
		{"close", func(c *coir.Chan[int]) { c.Close() }, "close"},
		{"abort", func(c *coir.Chan[int]) { c.Abort(nil) }, "abort"},
		{"select", func(c *coir.Chan[int]) { _, _ = coir.Select(context.Background(), c.SendCase(1)) }, "select"},
		{"try select", func(c *coir.Chan[int]) { _, _ = coir.TrySelect(c.RecvCase(nil)) }, "try select"},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := Explore(func(context.Context, *Sim) {
				orders := coir.NewChan[int](1, coir.WithName("orders"))
				done := make(chan bool)
				go func() {
					defer close(done)
					c.do(orders)
				}()
				<-done
			})
			f := res.Failure
			if f == nil || f.Kind != KindUncontrolled {
				t.Fatal("not reported:", f)
			}
			if !strings.Contains(f.Text, c.op) || !strings.Contains(f.Text, "orders") {
				t.Errorf("the report names neither the operation nor the channel: %s", f.Text)
			}
			if !strings.Contains(f.Text, ", at sim/sim_test.go:") {
				t.Errorf("the report does not name the place: %s", f.Text)
			}
		})
	}
}

func TestSometimesTellsWhatWasNeverSo(t *testing.T) {
	res := Explore(func(_ context.Context, s *Sim) {
		n := s.Intn(10)
		s.Sometimes(n == 3, "it is three")
		s.Sometimes(n == 10, "it is ten")
	}, WithSchedules(200))
	if res.Failure != nil {
		t.Fatal(res.Failure)
	}
	if len(res.Never) != 1 || res.Never[0] != "it is ten" {
		t.Errorf("never: %q", res.Never)
	}
}

// Spec: SM-02 (a schedule is its decisions)
func TestIntnIsADecisionOfTheSchedule(t *testing.T) {
	pick := func(_ context.Context, s *Sim) {
		if a, b := s.Intn(7), s.Intn(11); a == 5 && b == 9 {
			s.Errorf("%d and %d", a, b)
		}
	}
	// The second number goes round first: 5 whole rounds of 11, then the tenth.
	res := Explore(pick, WithStrategy(func(uint64) Strategy { return Exhaustive(-1) }))
	if res.Failure == nil || res.Schedules != 5*11+10 {
		t.Fatalf("found after %d schedules, and 65 are enough: %v", res.Schedules, res.Failure)
	}
	f, err := Replay(res.Failure.Token, pick)
	if err != nil || f == nil || f.Text != "5 and 9" {
		t.Errorf("the replay chose other numbers: %v, %v", f, err)
	}
}

// Spec: SM-08 (no fiber able to continue is a deadlock)
func TestReportsNameTheFibers(t *testing.T) {
	for _, c := range []struct {
		bug   string
		texts []string
	}{
		{"used after it was removed", []string{"panic", "handler", "expiry", "nil pointer"}},
		{"lost update", []string{"error", "deposit[0]", "deposit[1]", "two deposits make 1"}},
		{"locks in opposite order", []string{"deadlock", "ab", "recv b", "ba", "recv a"}},
		{"retry storm", []string{"livelock", "client", "try send line"}},
	} {
		t.Run(c.bug, func(t *testing.T) {
			b := find(t, c.bug)
			res := Explore(b.make(false), append(b.opts, WithSchedules(10_000))...)
			if res.Failure == nil {
				t.Fatal("not found")
			}
			report := res.Failure.Error()
			for _, text := range append(c.texts, res.Failure.Token) {
				if !strings.Contains(report, text) {
					t.Errorf("no %q in the report:\n%s", text, report)
				}
			}
		})
	}
}

// Users call Test, which must not fail a correct program.
func TestTestPassesWhatIsRight(t *testing.T) {
	Test(t, lostUpdate(true), WithSchedules(200))
}

type valueKey struct{}

// Operations are announced in whichever context a fiber performs them: its own, or one derived from it elsewhere.
//
// Spec: SM-01 (a policy is told before each operation)
func TestOperationsAreAnnouncedInAnyContext(t *testing.T) {
	kinds := func(derive func(context.Context) context.Context) (ks []policy.Kind) {
		exploreAll(t, RoundRobin(), 1, func(ctx context.Context, _ *Sim) {
			_ = coir.Run(ctx, func(own context.Context, n *coir.Nursery) error {
				ctx := derive(own)
				c := coir.NewChan[int](1)
				f := n.Go("other", func(context.Context) error { return nil })
				_ = c.Send(ctx, 1)
				_, _ = c.Recv(ctx)
				_, _ = coir.Select(ctx, c.RecvCase(nil), coir.After(time.Second))
				_ = coir.Sleep(ctx, time.Second)
				_ = coir.Yield(ctx)
				return f.Wait(ctx)
			})
		}, func(_ *observed, w *world) {
			for i := range w.nsteps {
				ks = append(ks, w.traced(i).op.Kind)
			}
		})
		return ks
	}
	own := kinds(func(ctx context.Context) context.Context { return ctx })
	derived := kinds(func(ctx context.Context) context.Context { return context.WithValue(ctx, valueKey{}, 1) })
	if !slices.Equal(own, derived) {
		t.Errorf("in its own context %v\nin a derived one %v", own, derived)
	}
}

// A bound that no schedule can keep is rejected when it is set.
func TestStepsNeedsAtLeastOne(t *testing.T) {
	for _, n := range []int{0, -5, math.MinInt} {
		func() {
			defer func() {
				if text := fmt.Sprint(recover()); !strings.Contains(text, fmt.Sprintf("sim: WithSteps(%d): ", n)) {
					t.Errorf("Steps(%d) panics with %q", n, text)
				}
			}()
			WithSteps(n)
		}()
	}
}
