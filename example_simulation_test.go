package coir_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/sim"
)

// This package simulates its own device, a printer. The program under test calls Print, which is the same in a
// simulation.

var errJam = errors.New("paper jam")

// printer is the model of the printer in a simulation.
type printer struct {
	cond  coir.Cond // guards what follows
	pages int
}

type printerKey struct{}

// Print prints a page, and returns how many pages the printer has printed.
func Print(ctx context.Context, page string) (int, error) {
	s := coir.Simulated(ctx)
	if s == nil {
		return 0, errors.New("no printer is connected") // here the real one would be used
	}
	p := s.State(printerKey{}, func() any { return new(printer) }).(*printer)
	if err := coir.Sleep(ctx, time.Duration(1+s.Intn(3))*time.Second); err != nil {
		return 0, err
	}
	if s.Fault("printer jam") {
		return 0, errJam
	}
	p.cond.Lock()
	defer p.cond.Unlock()
	p.pages++
	return p.pages, nil
}

// The test finds that the program does not handle a paper jam, without using a real printer.
func ExampleSimulation() {
	program := func(ctx context.Context, s *sim.Sim) {
		n := 0
		for _, page := range []string{"first", "second"} {
			n, _ = Print(ctx, page)
		}
		if n != 2 {
			s.Errorf("%d pages of 2", n)
		}
	}
	fmt.Println("without faults:", sim.Explore(program).Failure == nil)
	fmt.Println("with jams:", sim.Explore(program, sim.WithFaults("printer jam")).Failure.Text)
	// Output:
	// without faults: true
	// with jams: 1 pages of 2
}

// Outside of a simulation, Simulated returns nil.
func ExampleSimulated() {
	_ = coir.Run(context.Background(), func(ctx context.Context, _ *coir.Nursery) error {
		fmt.Println(coir.Simulated(ctx) == nil)
		return nil
	})
	_ = sim.Run(1, func(ctx context.Context, _ *sim.Sim) {
		fmt.Println(coir.Simulated(ctx) == nil)
		fmt.Println(coir.Simulated(context.Background()) == nil)
	})
	// Output:
	// true
	// false
	// false
}

// The schedule chooses the number: sim runs the program with each of them.
func ExampleSimulation_Intn() {
	seen := make([]bool, 3)
	sim.Explore(func(ctx context.Context, _ *sim.Sim) {
		seen[coir.Simulated(ctx).Intn(3)] = true
	})
	fmt.Println(seen)
	// Output: [true true true]
}

// A fault happens only in a simulation that names it.
func ExampleSimulation_Fault() {
	program := func(ctx context.Context, s *sim.Sim) {
		if coir.Simulated(ctx).Fault("disk full") {
			s.Errorf("no space left")
		}
	}
	fmt.Println(sim.Explore(program).Failure == nil)
	fmt.Println(sim.Explore(program, sim.WithFaults("disk full")).Failure.Text)
	// Output:
	// true
	// no space left
}

// Each schedule has its own state.
func ExampleSimulation_State() {
	type visits struct{ n int }
	most := 0
	sim.Explore(func(ctx context.Context, _ *sim.Sim) {
		for range 2 {
			v := coir.Simulated(ctx).State(visits{}, func() any { return new(visits) }).(*visits)
			v.n++
			most = max(most, v.n)
		}
	}, sim.WithSchedules(10))
	fmt.Println(most)
	// Output: 2
}
