package sim

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir"
)

type tableKey struct{}

// table is the state of a model that fibers share.
type table struct {
	cond coir.Cond
	made int
	rows []int
}

func tableOf() *table {
	s := coir.Simulated(context.Background())
	return s.State(tableKey{}, func() any { return &table{made: s.Intn(3)} }).(*table)
}

// TestStateBelongsToASchedule: the fibers of a schedule share a state, and the next schedule has another one. The call
// that makes it is ordered before its uses, which the race detector checks.
func TestStateBelongsToASchedule(t *testing.T) {
	all := map[*table]bool{}
	res := Explore(func(ctx context.Context, s *Sim) {
		_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			for i := range 3 {
				n.Go("row", func(ctx context.Context) error {
					x := tableOf()
					x.cond.Lock()
					x.rows = append(x.rows, i+x.made)
					x.cond.Unlock()
					return nil
				})
			}
			return nil
		})
		if x := tableOf(); len(x.rows) != 3 || all[x] {
			s.Errorf("%d rows, seen before: %v", len(x.rows), all[x])
		} else {
			all[x] = true
		}
		s.Sometimes(tableOf().made == 2, "drawn")
	}, WithSchedules(15)) // none is run twice
	if res.Failure != nil || len(res.Never) > 0 {
		t.Error(res.Failure, res.Never)
	}
}

// TestManyStates: each key has its own state, even if there are more keys than usual.
func TestManyStates(t *testing.T) {
	type key int
	res := Explore(func(ctx context.Context, s *Sim) {
		sim := coir.Simulated(ctx)
		for range 2 {
			for i := range key(100) {
				if v := sim.State(i, func() any { return i }); v != i {
					s.Errorf("key %d has %v", i, v)
				}
			}
		}
		if v := sim.State(0, func() any { return "another" }); v != "another" {
			s.Errorf("the key of another type has %v", v)
		}
	})
	if res.Failure != nil {
		t.Error(res.Failure)
	}
}

// TestADrawnNumberIsReplayed: a number that a model draws is a decision like any other.
//
// Spec: SM-05 (a token replays its schedule)
func TestADrawnNumberIsReplayed(t *testing.T) {
	program := func(ctx context.Context, s *Sim) {
		d := coir.Simulated(ctx)
		if a, b := d.Intn(5), d.Intn(7); a == 3 && b == 4 && d.Fault("last straw") {
			s.Errorf("found")
		}
	}
	f := found(t, KindError, program, WithFaults("last straw"), WithStrategy(Random))
	again, err := Replay(f.Token, program, WithFaults("last straw"))
	if err != nil || again == nil || again.Text != "found" {
		t.Errorf("replayed: %v, %v", again, err)
	}
	says(t, f, "fault last straw")
}

// TestSimulatedOutside: neither a goroutine nor a fiber of another runtime is simulated, while a simulation runs.
func TestSimulatedOutside(t *testing.T) {
	f := Run(1, func(ctx context.Context, _ *Sim) {
		done := make(chan bool)
		go func() {
			outside := coir.Simulated(ctx) == nil
			_ = coir.Run(context.Background(), func(ctx context.Context, _ *coir.Nursery) error {
				outside = outside && coir.Simulated(ctx) == nil
				return nil
			})
			done <- outside
		}()
		if !<-done {
			t.Error("simulated outside")
		}
	})
	var none *coir.Simulation
	if none.Fault("any") {
		t.Error("fired outside of any simulation")
	}
	if f == nil || f.Kind != KindBlocked { // for the goroutine
		t.Error(f)
	}
}

func TestIntnOfASimulationNeedsAPositiveNumber(t *testing.T) {
	f := Run(1, func(ctx context.Context, _ *Sim) { coir.Simulated(ctx).Intn(0) })
	if f == nil || f.Kind != KindPanic {
		t.Errorf("Intn(0) gave %v, want a failure of kind KindPanic", f)
	}
}

// TestASimulationIsUsedInside: its methods panic for goroutines, for fibers of other simulations, and when it has
// ended, and say what to do.
func TestASimulationIsUsedInside(t *testing.T) {
	var kept *coir.Simulation
	if f := Run(1, func(ctx context.Context, _ *Sim) {
		kept = coir.Simulated(ctx)
		misused(t, kept, "a goroutine")
	}); f == nil || f.Kind != KindBlocked { // for the goroutine
		t.Error(f)
	}
	misused(t, kept, "after the end")
	f := Run(1, func(context.Context, *Sim) { kept.Fault("any") })
	if f == nil || f.Kind != KindPanic || !strings.Contains(f.Text, "call coir.Simulated in each fiber") {
		t.Errorf("a fiber of another simulation: %v", f)
	}
}

// misused calls the methods in a goroutine.
func misused(t *testing.T, s *coir.Simulation, when string) {
	for name, call := range map[string]func(){
		"Intn":  func() { s.Intn(2) },
		"Fault": func() { s.Fault("any") },
		"State": func() { s.State(tableKey{}, func() any { return 1 }) },
	} {
		got := make(chan any)
		go func() {
			defer func() { got <- recover() }()
			call()
		}()
		text := fmt.Sprint(<-got)
		if !strings.Contains(text, "Simulation."+name) || !strings.Contains(text, "call coir.Simulated in each fiber") {
			t.Errorf("%s, %s: %s", name, when, text)
		}
	}
}

// TestNoSimulation: outside a simulation none is found, and a method that needs one says so.
func TestNoSimulation(t *testing.T) {
	var none *coir.Simulation
	for name, call := range map[string]func(){
		"Intn":  func() { none.Intn(2) },
		"State": func() { none.State(tableKey{}, func() any { return 1 }) },
	} {
		func() {
			defer func() {
				if text := fmt.Sprint(recover()); !strings.Contains(text, name+" of a nil *Simulation") {
					t.Errorf("%s: %s", name, text)
				}
			}()
			call()
		}()
	}
}

// TestStatesHaveKeysThatCompare: State panics for a key that cannot be compared.
func TestStatesHaveKeysThatCompare(t *testing.T) {
	for _, key := range []any{nil, []int{1}, [1]any{[]int{1}}, func() {}} {
		f := Run(1, func(ctx context.Context, _ *Sim) {
			coir.Simulated(ctx).State(key, func() any { return 1 })
		})
		if f == nil || f.Kind != KindPanic || !strings.Contains(f.Text, "use a value of a type of your own") {
			t.Errorf("%T: %v", key, f)
		}
	}
}

// TestSimulatedAtATime: a function that the clock calls is a part of the simulation, without a fiber.
func TestSimulatedAtATime(t *testing.T) {
	if f := Run(1, func(ctx context.Context, s *Sim) {
		var a coir.Alarm
		drawn := coir.NewPromise[int]()
		a.Start(ctx, whenEnded(func() { drawn.Resolve(coir.Simulated(ctx).Intn(1)) }), time.Second)
		if n, err := drawn.Wait(ctx); n != 0 || err != nil {
			s.Errorf("drawn: %d, %v", n, err)
		}
	}); f != nil {
		t.Error(f)
	}
}

type whenEnded func()

func (f whenEnded) Ended(error) { f() }
