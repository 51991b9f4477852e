package sim

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/locks"
)

// readThenWrite has two fibers that each read a number, and then write the number that follows it.
func readThenWrite(ctx context.Context, s *Sim) {
	n := 0
	mu := locks.NewMutex(coir.WithName("mu"))
	add := func(ctx context.Context) error { //nolint:unparam // a fiber's function returns an error
		_ = mu.Lock(ctx)
		was := n
		mu.Unlock()
		_ = mu.Lock(ctx)
		n = was + 1
		mu.Unlock()
		return nil
	}
	nursery(ctx, func(_ context.Context, n *coir.Nursery) {
		n.Go("left", add)
		n.Go("right", add)
	})
	if n != 2 {
		s.Errorf("n is %d", n)
	}
}

// aborting sends three values, unless a fault happens.
func aborting(ctx context.Context, s *Sim) {
	jobs := coir.NewChan[int](1, coir.WithName("jobs"))
	got := 0
	nursery(ctx, func(_ context.Context, n *coir.Nursery) {
		n.Go("producer", func(ctx context.Context) error {
			for i := range 3 {
				if s.Fault("abort") {
					jobs.Abort(context.Canceled)
					return nil
				}
				if err := jobs.Send(ctx, i); err != nil {
					return nil
				}
			}
			jobs.Close()
			return nil
		})
		n.Go("consumer", func(ctx context.Context) error {
			for range 3 {
				if _, err := jobs.Recv(ctx); err == nil {
					got++
				}
			}
			return nil
		})
	})
	if got != 3 {
		s.Errorf("got %d", got)
	}
}

// dropping has a worker that may take the end before the job, which was sent first.
func dropping(ctx context.Context, s *Sim) {
	jobs, quit := coir.NewChan[int](1, coir.WithName("jobs")), coir.NewChan[int](1, coir.WithName("quit"))
	got := 0
	nursery(ctx, func(_ context.Context, n *coir.Nursery) {
		n.Go("worker", func(ctx context.Context) error {
			for {
				i, err := coir.Select(ctx, jobs.RecvCase(nil), quit.RecvCase(nil))
				if i == 1 || err != nil {
					return nil
				}
				got++
			}
		})
		n.Go("boss", func(ctx context.Context) error {
			_ = jobs.Send(ctx, 1)
			return quit.Send(ctx, 1)
		})
	})
	if got != 1 {
		s.Errorf("got %d", got)
	}
}

// impatient fails if time passes while fibers can run.
func impatient(ctx context.Context, s *Sim) {
	c := coir.NewChan[int](0, coir.WithName("c"))
	nursery(ctx, func(_ context.Context, n *coir.Nursery) {
		n.Go("sender", func(ctx context.Context) error {
			_ = c.SendTimeout(ctx, 1, time.Second)
			return nil
		})
		n.Go("reader", func(ctx context.Context) error {
			if _, err := c.RecvTimeout(ctx, time.Second); err != nil {
				s.Errorf("%v", err)
			}
			return nil
		})
	})
}

// unlucky fails for one number.
func unlucky(ctx context.Context, s *Sim) {
	if s.Intn(3) == 2 {
		s.Errorf("two")
	}
}

// doomed fails in each of its schedules.
func doomed(ctx context.Context, s *Sim) {
	c := coir.NewChan[int](2, coir.WithName("c"))
	nursery(ctx, func(_ context.Context, n *coir.Nursery) {
		n.Go("sender", func(ctx context.Context) error { return c.Send(ctx, 1) })
	})
	s.Errorf("always")
}

// The report describes each kind of decision, for both schedules, and marks it in the table.
func TestTwins(t *testing.T) {
	for _, c := range []struct {
		name string
		kind Kind
		fn   func(context.Context, *Sim)
		want string
		opts []Option
	}{
		{"lost update", KindError, readThenWrite, "after step 6 right ran on (lock mu, at sim/twin_test.go:20); " +
			"in the schedule that passes, left ran (unlock mu, at sim/twin_test.go:22)", nil},
		{"deadlock", KindDeadlock, crossed, "after step 8 lock[1] ran on (recv b, at sim/report_test.go:75); " +
			"in the schedule that passes, lock[0] ran (recv b, at sim/report_test.go:75)", nil},
		{"select", KindError, dropping, "after step 9 worker received from quit in a select, at sim/twin_test.go:76; " +
			"in the schedule that passes, worker received from jobs in a select, at sim/twin_test.go:76", nil},
		{"fault", KindError, aborting, "after step 4 the fault abort happened; " +
			"in the schedule that passes, the fault abort did not happen", []Option{WithFaults("abort")}},
		{"time", KindError, impatient, "after step 5 time went on, to 1s; " +
			"in the schedule that passes, reader ran (start)", []Option{WithClock(ClockRacing)}},
		{"number", KindError, unlucky, "after step 0 main drew 2 (intn 3); " +
			"in the schedule that passes, main drew 0 (intn 3)", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := found(t, c.kind, c.fn, c.opts...)
			says(t, f, "  diverges here: "+c.want+"\n", "\n    fails ", " | passes\n", "=>", "in common")
			if c.name != "number" && strings.Count(f.Error(), "=>") != 4 {
				t.Errorf("the decision is not marked in both, in the table and in its legend:\n%v", f)
			}
			if again := found(t, c.kind, c.fn, c.opts...); again.Error() != f.Error() {
				t.Errorf("another report:\n%v\nwas:\n%v", again, f)
			}
		})
	}
}

// excused has two fibers that each read a number, and then write the number that follows it. A lost update is no error
// if a fault happens.
func excused(ctx context.Context, s *Sim) {
	var n atomic.Int32
	nursery(ctx, func(_ context.Context, of *coir.Nursery) {
		for i := range 2 {
			of.Go("adds", func(ctx context.Context) error {
				was := n.Load()
				_ = coir.Yield(ctx)
				n.Store(was + 1)
				return nil
			}, coir.WithIndex(i))
		}
	})
	if n.Load() != 2 && !s.Fault("excuse") {
		s.Errorf("n is %d", n.Load())
	}
}

// A passing schedule that has a fault which the failing one does not have would only show that the fault matters. It is
// the twin only if no other schedule passes.
func TestTheTwinHasNoMoreFaults(t *testing.T) {
	f := found(t, KindError, excused, WithFaults("excuse"))
	says(t, f, "diverges here: ", "  no schedule without further faults that passes has more in common with this one\n")
	saysNot(t, f, "fault excuse")
	f = found(t, KindError, func(ctx context.Context, s *Sim) {
		if _ = coir.Yield(ctx); !s.Fault("stop") {
			s.Errorf("always")
		}
	}, WithFaults("stop"))
	says(t, f, "after step 1 the fault stop was ruled out; in the schedule that passes, the fault stop was allowed, and "+
		"first happened at step 2\n")
}

// Each decision for which another fiber gets the turn, time passes or another case is chosen has a mark, as in the
// reports of coir test.
func TestSwitchesAreMarked(t *testing.T) {
	for _, c := range []struct {
		name, legend string
		kind         Kind
		fn           func(context.Context, *Sim)
		opts         []Option
	}{
		{"turns", "another fiber gets the turn after this;", KindDeadlock, crossed, nil},
		{"a case", "", KindError, dropping, nil},
		{"time", "", KindError, impatient, []Option{WithClock(ClockRacing)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := found(t, c.kind, c.fn, c.opts...)
			n := 0
			for _, s := range newReport(f).drawing().Steps {
				if n += s.Switches; (s.Switches > 0) != (s.Switch != "") {
					t.Errorf("step %d has %d switches, %q", s.Number, s.Switches, s.Switch)
				}
			}
			if n != f.Switches || n == 0 {
				t.Errorf("%d marks of %d choices:\n%v", n, f.Switches, f)
			}
			if c.legend != "" {
				says(t, f, "marks: > leaves the plain order: "+c.legend, "   >")
			}
		})
	}
}

// No passing schedule has more decisions in common with the failing one than the twin: all schedules are tried.
func TestTheTwinSharesTheMost(t *testing.T) {
	for name, c := range map[string]struct {
		fn   func(context.Context, *Sim)
		opts []Option
	}{
		"lost update": {readThenWrite, nil}, "deadlock": {crossed, nil}, "select": {dropping, nil},
		"fault": {aborting, []Option{WithFaults("abort")}},
	} {
		t.Run(name, func(t *testing.T) {
			f := Explore(c.fn, c.opts...).Failure
			if f == nil || f.twin == nil || f.twin.passed == nil {
				t.Fatalf("no twin of %v", f)
			}
			at, passed := f.twin.At, f.twin.passed
			if !slices.Equal(passed.script[:at], f.script[:at]) || passed.script[at] == f.script[at] {
				t.Errorf("the twin %v does not begin as %v", passed.script, f.script)
			}
			all, passes := beginningWith(t, f.script[:at+1], c.fn, settle(c.opts))
			if t.Logf("%d schedules", all); passes > 0 {
				t.Errorf("the twin shares %d decisions, and %d schedules share more", at, passes)
			}
		})
	}
}

// beginningWith runs all schedules that begin with a script, and returns how many there are, and how many of them pass.
func beginningWith(t *testing.T, script []int, fn func(context.Context, *Sim), set settings) (all, passed int) {
	t.Helper()
	w := newWorld(set.mode, set.limit)
	s := &Sim{w: w, faults: planFaults(set.faults)}
	_ = w.runInFiber(func(ctx context.Context) {
		for next := slices.Clone(script); next != nil; all++ {
			f := w.follow(ctx, s, fn, next, nil)
			if f == nil {
				passed++
			}
			next = nil
			for at := w.ndec - 1; at >= len(script); at-- {
				if d := w.decisions[at]; d.chosen+1 < d.of {
					for _, d := range w.decisions[:at] {
						next = append(next, d.chosen)
					}
					next = append(next, d.chosen+1)
					break
				}
			}
		}
	})
	return all, passed
}

func TestNoTwin(t *testing.T) {
	f := found(t, KindError, doomed)
	says(t, f, "  the program fails in all its ")
	saysNot(t, f, "diverges here", "=>")
	f = found(t, KindError, func(_ context.Context, s *Sim) { s.Errorf("always") })
	says(t, f, "  there was nothing to decide: the program fails in its only schedule\n")
	f = found(t, KindError, func(ctx context.Context, s *Sim) { // too many schedules to try them all
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			for range 6 {
				n.Go("yields", func(ctx context.Context) error {
					for range 4 {
						_ = coir.Yield(ctx)
					}
					return nil
				})
			}
		})
		s.Errorf("always")
	})
	says(t, f, "other schedules; none that passes was found\n")
	saysNot(t, f, "diverges here", "=>")
}

// A replay runs only one schedule, and so does Drawn. Neither searches.
func TestNoTwinOfOneSchedule(t *testing.T) {
	f := found(t, KindError, readThenWrite)
	runs := 0
	again, err := Replay(f.Token, func(ctx context.Context, s *Sim) { runs++; readThenWrite(ctx, s) })
	if err != nil || again == nil || runs != 1 {
		t.Fatal(again, err, runs)
	}
	saysNot(t, again, "diverges here")
}

// The twin of a long schedule is found far from its end.
func TestTwinOfALongSchedule(t *testing.T) {
	f := found(t, KindError, func(ctx context.Context, s *Sim) {
		readThenWrite(ctx, s)
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			for i := range 4 {
				n.Go("later", func(ctx context.Context) error {
					for range 100 {
						_ = coir.Yield(ctx)
					}
					return nil
				}, coir.WithIndex(i))
			}
		})
	})
	says(t, f, "diverges here: after step 6 right ran on (lock mu,", "; in the schedule that passes, left ran (unlock mu,",
		" schedules that were tried, this one passes and has the most in common\n")
	if f.twin.Tried > twinLimits.Schedules {
		t.Errorf("%d schedules were tried", f.twin.Tried)
	}
}
