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

// rapid draws schedules, and shrinks those that fail.
//
// rapid draws the decisions of a schedule like any other data. It shrinks a failing schedule to fewer draws and smaller
// numbers. The number 0 is the decision that changes least, so the result has few switches. The program has its own
// inputs, also drawn by rapid, and rapid shrinks these together with the schedule.

const stock = 10

// shop is a program with a mistake: clients buy from a stock. Each client checks how many items are left and, if there
// are enough, takes what it wants. If fixed is set, the check and the taking are one step.
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

// decisions makes rapid draw each decision when it is needed.
func decisions(t *rapid.T) func(n int) int {
	return func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "way") }
}

// switches makes rapid draw a list beforehand: how many decisions pass before one is not 0, and its value. rapid
// shrinks lists best, and here a shorter list has fewer switches.
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

// A rapid check that fails reports the smallest failure that it found: orders that exceed the stock by one, and a
// schedule with few switches.
func TestRapidShrinksASchedule(t *testing.T) {
	for _, c := range []struct {
		name     string
		schedule func(t *rapid.T) func(n int) int
		most     int // how many switches may be left
	}{
		{"decisions", decisions, 12}, // of 21: rapid gets stuck where two of them must change at once
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
				defer func() { _ = recover() }() // from the FailNow outside
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

// quietly prevents rapid from writing a file for an expected failure, and sets its seed and number of checks.
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

// failing is a test that may fail without failing the real test.
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
