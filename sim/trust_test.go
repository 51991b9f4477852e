package sim

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/pubsub"
)

// These tests check what a reader relies on: a token replays the same schedule, an error of the test has a token, and a
// condition that should be reached has been reached.

// detour yields n times, and sleeps instead of one of the yields.
func detour(n, at int) program {
	return func(ctx context.Context, s *Sim) {
		for i := range n {
			if i+1 == at {
				_ = coir.Sleep(ctx, 1)
			} else {
				_ = coir.Yield(ctx)
			}
		}
		s.Errorf("end")
	}
}

// A token shows in which window of 64 steps the program has changed.
//
// Spec: SM-05 (a token replays its schedule)
func TestDivergedSaysWhere(t *testing.T) {
	for _, c := range []struct {
		steps, at int
		want      string
	}{
		{300, 1, "between step 1 and step 64:"},
		{300, 64, "between step 1 and step 64:"},
		{300, 65, "between step 65 and step 128:"},
		{300, 200, "between step 193 and step 256:"},
		{300, 299, "between step 257 and step 300, its last:"},
		{20, 3, "between step 1 and step 20, its last:"},
		{40_000, 20_000, "between step 19969 and step 20224:"}, // for a long schedule, in a window of 256
	} {
		opts := []Option{WithSteps(50_000), WithSchedules(1)}
		token := found(t, KindError, detour(c.steps, 0), opts...).Token
		if len(token) > 600 {
			t.Errorf("the token of %d steps has %d letters", c.steps, len(token))
		}
		f, err := Replay(token, detour(c.steps, c.at), opts...)
		if err != nil || f == nil || f.Kind != KindDiverged || !strings.Contains(f.Text, c.want) {
			t.Errorf("%d of %d: %v, %v; want %s", c.at, c.steps, f, err, c.want)
		}
		if f, err = Replay(token, detour(c.steps, 0), opts...); err != nil || f == nil || f.Kind != KindError {
			t.Errorf("%d: the same program is %v, %v", c.steps, f, err)
		}
	}
	// It does not fail any more, and has fewer steps.
	f, err := Replay(found(t, KindError, detour(300, 0)).Token, func(ctx context.Context, _ *Sim) {
		for range 100 {
			_ = coir.Yield(ctx)
		}
	})
	if err != nil || f == nil || !strings.Contains(f.Text, "does not fail under this schedule") ||
		!strings.Contains(f.Text, "between step 65 and step 100, its last") {
		t.Error(f, err)
	}
}

func TestDamagedMarks(t *testing.T) {
	token := encode(ClockIdle, []int{1}, 7, make([]byte, 300))
	if r, err := decode(token); err != nil || len(r.marks) != 150 || r.every != 128 || r.hash != 7 || len(r.script) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	for n := len(tokenVersion); n < 200; n++ {
		if _, err := decode(token[:n]); err == nil {
			t.Errorf("%d letters are enough", n)
		}
	}
}

// Fatalf ends the schedule at its step, in any fiber. The failure is shrunk, and replayed.
func TestFatalf(t *testing.T) {
	for _, where := range []string{"main", "child"} {
		t.Run(where, func(t *testing.T) {
			after, deferred := 0, 0
			fn := func(ctx context.Context, s *Sim) {
				stop := func(ctx context.Context) error {
					defer func() { deferred++ }()
					_ = coir.Yield(ctx)
					s.Errorf("first")
					if s.Intn(4) == 3 {
						s.Fatalf("fatal in %s", where)
						after++
					}
					return nil
				}
				nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
					n.Go("waits", func(ctx context.Context) error {
						_, err := coir.NewChan[int](0).RecvTimeout(ctx, 1)
						return err
					})
					if where == "child" {
						n.Go("child", stop)
						return
					}
					_ = stop(ctx)
				})
			}
			res := Explore(func(ctx context.Context, s *Sim) {
				fn(ctx, s)
			}, WithStrategy(Random))
			if res.Failure == nil || res.Failure.Kind != KindError || after > 0 || deferred == 0 {
				t.Fatalf("%v, %d times it went on", res.Failure, after)
			}
			if again, err := Replay(res.Failure.Token, fn); err != nil || again == nil || again.Kind != KindError {
				t.Error(again, err)
			}
		})
	}
	f := found(t, KindError, func(_ context.Context, s *Sim) { s.Fatalf("the sum is %d", 5) })
	says(t, f, "error after 0 steps", "the sum is 5", "| error: the sum is 5 |", "replay: ")
}

// A program that calls t.Fatal ends the test, and so cannot be run again. The report says how to replay the schedule.
func TestFatalOfTheTestHasAToken(t *testing.T) {
	l := &listener{TB: t}
	fn := func(ctx context.Context, s *Sim) {
		_ = coir.Yield(ctx)
		if s.Intn(3) == 2 {
			runtime.Goexit() // as t.Fatal
		}
	}
	done := make(chan bool)
	go func() {
		returned := false
		defer func() { done <- returned }()
		Test(l, fn)
		returned = true
	}()
	if <-done {
		t.Error("the test goes on")
	}
	text := l.said.String()
	expect(t, text, true, true, "the program ended its goroutine in this schedule, as t.Fatal does", "s.Fatalf", "| intn 3 → 2 ", "-sim.replay=s3.")
	_, token, _ := strings.Cut(text, "-sim.replay=")
	token, _, _ = strings.Cut(token, "\n")
	go func() {
		defer func() { done <- true }()
		_, _ = Replay(token, fn)
		t.Error("the replay does not end the goroutine")
	}()
	<-done
}

// So does a program that calls t.Error, or t.Fatal in a fiber.
func TestErrorOfTheTestHasAToken(t *testing.T) {
	l := &listener{TB: t}
	text, failed := "", false
	func() {
		defer func() { _, failed = recover().(fatal) }()
		Test(l, func(ctx context.Context, s *Sim) {
			_ = coir.Yield(ctx)
			if s.Intn(3) == 2 {
				l.failed = true
			}
		})
	}()
	text = l.said.String()
	expect(t, text, failed, true, "the program called t.Error or t.Fatal. Use s.Errorf", "| intn 3 → 2 ", "-sim.replay=s3.")
}

// A call of Sometimes that no schedule reaches fails the test, and so does one whose condition was never true.
func TestSometimesThatIsNeverReached(t *testing.T) {
	text, _ := told(t, nil, func(ctx context.Context, s *Sim) {
		s.Sometimes(true, "begun")
		if s.Intn(2) > 5 {
			s.Sometimes(true, "greater than five")
			func() { s.Sometimes(true, "greater than five, twice") }()
		}
		s.Sometimes(s.Intn(2) > 5, "five")
	}, WithSchedules(50))
	expect(t, text, false, false, "in 50 schedules this was never so: five\n",
		"in 50 schedules this was never so: greater than five (this call of Sometimes was never reached)\n",
		"in 50 schedules this was never so: greater than five, twice (this call of Sometimes was never reached)\n")
	if strings.Contains(text, "begun") {
		t.Error(text)
	}
	if text, _ = told(t, nil, reachesNothing, WithSchedules(5)); !strings.Contains(text, "in a function (this call") {
		t.Error(text)
	}
}

func reachesNothing(_ context.Context, s *Sim) {
	if s.Intn(2) > 5 {
		s.Sometimes(true, "in a function")
	}
}

// The last line of a test that passes says how many pairs of operations came in both orders.
func TestPassLineHasTheCoverage(t *testing.T) {
	racing := func(ctx context.Context, _ *Sim) {
		c := coir.NewChan[int](4, coir.WithName("c"))
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			for i := range 2 {
				n.Go("send", func(ctx context.Context) error { return c.Send(ctx, i) }, coir.WithIndex(i))
			}
		})
	}
	text, _ := told(t, nil, racing, WithSchedules(400))
	expect(t, text, false, false, "; 1 of 1 pair of conflicting operations in both orders, none new since schedule ")
	text, _ = told(t, nil, racing, WithSchedules(1))
	expect(t, text, false, false, "; 0 of 1 pair of conflicting operations in both orders")
	grows := 0
	text, _ = told(t, nil, func(ctx context.Context, _ *Sim) {
		grows++
		c := coir.NewChan[int](4, coir.WithName(fmt.Sprint("c", grows/20)))
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			n.Go("a", func(ctx context.Context) error { return c.Send(ctx, 1) })
			n.Go("b", func(ctx context.Context) error { return c.Send(ctx, 1) })
		})
	}, WithSchedules(200))
	expect(t, text, false, false, ", and still growing")
	if text, _ = told(t, nil, func(context.Context, *Sim) {}); strings.Contains(text, "pair") {
		t.Error(text)
	}
}

// raced sends prices, and calls access in two fibers that are not ordered.
func raced(access func(v int)) program {
	return func(ctx context.Context, _ *Sim) {
		prices := pubsub.NewBroadcast[int](coir.WithName("prices"))
		nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
			sub := prices.Subscribe(1)
			n.Go("reader", func(ctx context.Context) error {
				v, err := sub.Recv(ctx)
				access(v)
				return err
			})
			_ = prices.Publish(ctx, 1)
			_ = coir.Sleep(ctx, time.Second)
			access(2)
			_ = coir.Sleep(ctx, time.Minute)
		})
	}
}

// The report of a data race says in which fiber the detector found it, and between which steps. Its table ends there,
// and shows calls of the library as other reports do.
func TestReportOfADataRace(t *testing.T) {
	if text := outsideText(false); strings.Contains(text, "race") {
		t.Error(text)
	}
	failed := false
	res := Explore(func(ctx context.Context, s *Sim) {
		raced(func(v int) {
			if v == 2 && !failed { // the detector reports each race once
				s.w.raced, s.w.race = true, mark{step: s.w.nsteps, fiber: s.w.current, kind: raceMark}
				failed = true
			}
		})(ctx, s)
	}, func(set *settings) { set.failed = func() bool { return failed } })
	f := res.Failure
	if f == nil || f.Kind != KindError || !strings.Contains(f.Text, "data race") || strings.Contains(f.Text, "Errorf") {
		t.Fatal(f)
	}
	says(t, f, "  the second access of the first race is in main after step ", " (sleep 1s, at sim/trust_test.go:",
		" and before step ", " (sleep 1m0s, at sim/trust_test.go:", "| Broadcast.Publish prices ", "| data race ")
	saysNot(t, f, "| sleep 1m0s", "| lock")
}

var doRace = flag.Bool("race-in-a-fiber", false, "fail by a data race: only TestReportOfARealDataRace sets it")

// In a race build, sim learns from the detector in which schedule and in which fiber it has found a race.
func TestReportOfARealDataRace(t *testing.T) {
	if *doRace {
		var total int
		Test(t, raced(func(v int) { total += v }), WithStrategy(func(uint64) Strategy { return RoundRobin() }))
		return
	}
	if !race.Enabled {
		t.Skip("it needs the race detector")
	}
	out, err := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestReportOfARealDataRace$", "-race-in-a-fiber").
		CombinedOutput()
	for _, text := range []string{"WARNING: DATA RACE", "error after ", "): a data race, which is reported above: ",
		"  the second access of the first race is in main after step ", "| data race ", "-sim.replay="} {
		if err == nil || !strings.Contains(string(out), text) {
			t.Fatalf("%v: it does not say %q:\n%s", err, text, out)
		}
	}
}
