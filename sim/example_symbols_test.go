package sim_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/sim"
)

// patient waits for an answer for a second, and the answer takes up to two.
func patient(ctx context.Context, s *sim.Sim) {
	answer := coir.NewChan[int](1, coir.WithName("answer"))
	_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		n.Go("ask", func(ctx context.Context) error {
			if err := coir.Sleep(ctx, time.Duration(s.Intn(3))*time.Second); err != nil {
				return err
			}
			return answer.Send(ctx, 42)
		})
		_, err := answer.RecvTimeout(ctx, time.Second)
		s.Sometimes(err == nil, "answered")
		s.Sometimes(errors.Is(err, coir.ErrTimeout), "too late")
		return nil
	})
}

func ExampleTest() {
	// In a test file, as func TestPatient(t *testing.T):
	_ = func(t *testing.T) {
		sim.Test(t, patient, sim.WithSchedules(500))
	}
}

// One schedule, chosen by a seed.
func ExampleRun() {
	for seed := uint64(1); ; seed++ {
		if f := sim.Run(seed, counter); f != nil {
			fmt.Println(f.Kind == sim.KindError, f.Text, f.Seed == seed)
			break
		}
	}
	// Output: true counted to 1 true
}

// The token of a failure runs the same schedule again. If the program has changed since, Replay says so.
func ExampleReplay() {
	f := sim.Explore(counter).Failure
	again, _ := sim.Replay(f.Token, counter)
	fmt.Println(again.Kind, again.Steps == f.Steps, again.Switches == f.Switches)
	changed, _ := sim.Replay(f.Token, patient)
	fmt.Println(changed.Kind == sim.KindDiverged)
	// Output:
	// error true true
	// true
}

func ExampleResult() {
	res := sim.Explore(patient, sim.WithSeed(7), sim.WithSchedules(200))
	fmt.Println(res.Failure, res.Schedules, res.Steps > res.Schedules, res.Never, res.Elapsed > 0)
	fmt.Println(res.Complete, res.Covered == "")
	// Output:
	// <nil> 200 true [] true
	// false true
}

// A condition that was true in no schedule.
func ExampleSim_Sometimes() {
	res := sim.Explore(func(_ context.Context, s *sim.Sim) {
		s.Sometimes(s.Intn(3) == 2, "two")
		s.Sometimes(s.Intn(3) == 3, "three")
	})
	fmt.Println(res.Never)
	// Output: [three]
}

// The report of a failure shows the texts of Logf where it was called.
func ExampleSim_Logf() {
	f := sim.Explore(func(ctx context.Context, s *sim.Sim) {
		for i := range 3 {
			n := s.Intn(10)
			s.Logf("draw %d is %d", i, n)
			if n == 7 {
				s.Fatalf("a seven")
			}
			_ = coir.Yield(ctx)
		}
	}).Failure
	fmt.Println(strings.Contains(f.Error(), "log: draw 0 is "), strings.Contains(f.Error(), " is 7"))
	// Output: true true
}

// The schedule continues after Errorf, but not after Fatalf.
func ExampleSim_Fatalf() {
	f := sim.Explore(func(ctx context.Context, s *sim.Sim) {
		orders := coir.NewChan[int](1)
		orders.Close()
		if err := orders.Send(ctx, 1); err != nil {
			s.Fatalf("the order was refused: %v", err)
		}
		panic("not reached")
	}).Failure
	fmt.Println(f.Kind, f.Text)
	// Output: error the order was refused: coir: channel is closed
}

// A fault is a decision of the schedule, if an option names it.
func ExampleSim_Fault() {
	program := func(ctx context.Context, s *sim.Sim) {
		if s.Fault("clock step") {
			s.Advance(time.Hour)
		}
		if s.Now() > 0 {
			s.Errorf("it is %v", s.Now())
		}
	}
	fmt.Println(sim.Explore(program).Failure)
	fmt.Println(sim.Explore(program, sim.WithFaults("clock step")).Failure.Text)
	// Output:
	// <nil>
	// it is 1h0m0s
}

// With ClockIdle a timeout never fires while there is work to do; with ClockRacing it may.
func ExampleWithClock() {
	program := func(ctx context.Context, s *sim.Sim) {
		ctx, cancel := coir.WithTimeout(ctx, time.Second)
		defer cancel()
		if err := coir.Yield(ctx); err != nil {
			s.Errorf("%v", err)
		}
	}
	for _, mode := range []sim.ClockMode{sim.ClockIdle, sim.ClockRacing} {
		fmt.Println(sim.Explore(program, sim.WithClock(mode)).Failure != nil)
	}
	// Output:
	// false
	// true
}

// A program that does not end is a livelock after twice as many steps.
func ExampleWithSteps() {
	f := sim.Explore(func(ctx context.Context, _ *sim.Sim) {
		for coir.Yield(ctx) == nil {
		}
	}, sim.WithSteps(100)).Failure
	fmt.Println(f.Kind == sim.KindLivelock, f.Steps)
	// Output: true 200
}

// Each strategy finds the mistake of the program counter.
func ExampleWithStrategy() {
	for _, strategy := range []func(seed uint64) sim.Strategy{
		sim.Default, sim.Random, sim.Uniform,
		func(seed uint64) sim.Strategy { return sim.PCT(seed, 3) },
		func(uint64) sim.Strategy { return sim.Exhaustive(2) },
		func(uint64) sim.Strategy { return sim.DPOR() },
		func(seed uint64) sim.Strategy { return sim.Portfolio(sim.RoundRobin(), sim.Random(seed)) },
		func(uint64) sim.Strategy { return sim.RoundRobin() },
	} {
		res := sim.Explore(counter, sim.WithStrategy(strategy))
		fmt.Println(strategy(1).Name(), res.Failure != nil)
	}
	// Output:
	// portfolio true
	// random true
	// uniform true
	// pct true
	// exhaustive true
	// dpor true
	// portfolio true
	// roundrobin true
}

// lastFirst is a custom strategy: of the fibers that can run, it chooses the last.
type lastFirst struct{}

func (lastFirst) Name() string            { return "last first" }
func (lastFirst) Begin(schedule int) bool { return schedule == 0 }

func (lastFirst) Choose(f *sim.Fork) int {
	if f.Keep && f.After || f.Step() > 1000 || f.Fiber(f.N-1) < 0 {
		return 0
	}
	return f.N - 1
}

func ExampleStrategy() {
	res := sim.Explore(counter, sim.WithStrategy(func(uint64) sim.Strategy { return lastFirst{} }))
	fmt.Println(res.Schedules, res.Failure != nil)
	// Output: 1 true
}

// The report is text, and a page with a chart.
func ExampleFailure() {
	f := sim.Explore(func(ctx context.Context, _ *sim.Sim) {
		_, _ = coir.NewChan[int](0, coir.WithName("jobs")).Recv(ctx)
	}).Failure
	first, rest, _ := strings.Cut(f.Error(), "\n")
	fmt.Println(first)
	fmt.Println(strings.Contains(rest, "no fiber is left to send to or close jobs"))
	file, err := os.CreateTemp("", "chart*.html")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.Remove(file.Name()) }()
	fmt.Println(f.WriteHTML(file), file.Close())
	// Output:
	// deadlock after 1 step, 0 choices (schedule 1, strategy portfolio, seed 1): no fiber can run
	// true
	// <nil> <nil>
}

// What to do about a failure depends on its kind.
func ExampleKind() {
	for _, kind := range []sim.Kind{
		sim.KindError, sim.KindPanic, sim.KindDeadlock, sim.KindLivelock, sim.KindDiverged, sim.KindUncontrolled,
		sim.KindBlocked, sim.KindNondeterministic, sim.KindEmpty,
	} {
		switch kind {
		case sim.KindError, sim.KindPanic, sim.KindDeadlock, sim.KindLivelock:
			fmt.Println(kind, "is a mistake of the program")
		case sim.KindDiverged:
			fmt.Println(kind, "needs a new token")
		case sim.KindEmpty:
			fmt.Println(kind, "is a test that tests nothing")
		default:
			fmt.Println(kind, "is something that sim does not control")
		}
	}
	// Output:
	// error is a mistake of the program
	// panic is a mistake of the program
	// deadlock is a mistake of the program
	// livelock is a mistake of the program
	// diverged needs a new token
	// uncontrolled is something that sim does not control
	// blocked is something that sim does not control
	// nondeterministic is something that sim does not control
	// empty is a test that tests nothing
}
