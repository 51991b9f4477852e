package verify

import (
	"context"
	"flag"
	"fmt"
	"testing"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/sim"
	"pgregory.net/rapid"
)

// Schedules that rapid makes up, and makes smaller.
//
// rapid draws the decisions of a schedule as it draws any data. What it finds it
// shrinks: to fewer draws and to smaller numbers, and since 0 is the way that
// changes least, to few switches. The program has inputs of its own here, drawn
// by the same rapid, and these get smaller together with the schedule.

const stock = 10

// shop is a program with a mistake: clients buy from a stock, each by a look at
// how many are left and, if there are enough, by taking what it wants. With
// fixed set the look and the taking are one step.
func shop(orders []int, fixed bool) func(context.Context, *sim.Sim) {
	return func(ctx context.Context, s *sim.Sim) {
		left := coir.NewChan[int](1, coir.WithName("left"))
		_ = left.Send(ctx, stock)
		_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			for i, want := range orders {
				n.Go("client", func(ctx context.Context) error {
					seen, err := left.Recv(ctx)
					if err != nil {
						return err
					}
					if !fixed {
						if err := left.Send(ctx, seen); err != nil {
							return err
						}
					}
					enough := seen >= want
					if !fixed {
						if seen, err = left.Recv(ctx); err != nil {
							return err
						}
					}
					if enough {
						seen -= want
					}
					return left.Send(ctx, seen)
				}, coir.WithIndex(i))
			}
			return nil
		})
		if n, _ := left.TryRecv(); n < 0 {
			s.Errorf("%d left", n)
		}
	}
}

// decisions has rapid draw each decision when it comes up.
func decisions(t *rapid.T) func(n int) int {
	return func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "way") }
}

// switches has rapid draw a list beforehand: of how many decisions pass before one
// is not 0, and what that is then. A list is what rapid shrinks best, and here a
// shorter one has fewer switches.
func switches(t *rapid.T) func(n int) int {
	type turn struct{ after, way int }
	turns := rapid.SliceOf(rapid.Custom(func(t *rapid.T) turn {
		return turn{rapid.IntRange(0, 20).Draw(t, "after"), rapid.IntRange(1, 3).Draw(t, "way")}
	})).Draw(t, "switches")
	return func(n int) int {
		if len(turns) == 0 {
			return 0
		}
		if turns[0].after > 0 {
			turns[0].after--
			return 0
		}
		way := turns[0].way
		turns = turns[1:]
		return way % n
	}
}

// A rapid check that fails ends with the smallest that it has found: orders that
// exceed the stock by one, and a schedule with few switches.
func TestRapidShrinksASchedule(t *testing.T) {
	for _, c := range []struct {
		name     string
		schedule func(t *rapid.T) func(n int) int
		most     int // switches that are left
	}{
		{"decisions", decisions, 12}, // of 21: rapid gets stuck where two of them have to change at once
		{"switches", switches, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			if testing.Short() && c.most > 2 {
				t.Skip("rapid tries very many of them")
			}
			quietly(t)
			outside := &failing{TB: t}
			var orders []int
			var first, last *sim.Failure
			func() {
				defer func() { _ = recover() }() // FailNow of outside
				rapid.Check(outside, func(t *rapid.T) {
					o := rapid.SliceOfN(rapid.IntRange(0, 10), 3, 3).Draw(t, "orders")
					if f := sim.Drawn(c.schedule(t), shop(o, false)); f != nil {
						if first == nil {
							first = f
						}
						orders, last = o, f
						t.Fatal(f.Kind, f.Text)
					}
				})
			}()
			if !outside.failed || last == nil {
				t.Fatal("rapid has not found it")
			}
			t.Logf("found with %d switches, and orders %v with %d are left:\n%v", first.Switches, orders, last.Switches, last)
			if sum(orders) != stock+1 || last.Switches > c.most {
				t.Errorf("orders %v and %d switches are left", orders, last.Switches)
			}
			again, err := sim.Replay(last.Token, shop(orders, false))
			if err != nil || again == nil || again.Text != last.Text {
				t.Errorf("the token gives %v, %v", again, err)
			}
		})
	}
}

func TestRapidFindsNothingInTheTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		orders := rapid.SliceOfN(rapid.IntRange(0, stock), 1, 6).Draw(t, "orders")
		if f := sim.Drawn(decisions(t), shop(orders, true)); f != nil {
			t.Fatal(f)
		}
	})
}

func sum(values []int) (n int) {
	for _, v := range values {
		n += v
	}
	return n
}

// quietly keeps rapid from writing a file of a failure that is wanted, and fixes its
// seed and number of checks.
func quietly(t *testing.T) {
	t.Helper()
	for name, value := range map[string]string{"rapid.nofailfile": "true", "rapid.seed": "4", "rapid.checks": "1000"} {
		was := flag.Lookup(name).Value.String()
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = flag.Set(name, was) })
	}
}

// failing is a test that may fail without failing the one it stands in for.
type failing struct {
	rapid.TB
	failed bool
}

func (f *failing) Errorf(format string, args ...any) { f.failed = true; f.Logf(format, args...) }
func (f *failing) Error(args ...any)                 { f.Errorf("%s", fmt.Sprint(args...)) }
func (f *failing) Fatalf(format string, args ...any) { f.Errorf(format, args...); f.FailNow() }
func (f *failing) Fatal(args ...any)                 { f.Error(args...); f.FailNow() }
func (f *failing) Fail()                             { f.failed = true }
func (f *failing) FailNow()                          { f.failed = true; panic(f) }
func (f *failing) Failed() bool                      { return f.failed }
