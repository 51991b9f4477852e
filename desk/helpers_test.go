package desk_test

import (
	"context"
	"testing"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/soak"
	"github.com/coir-go/coir/sim"
)

// sized returns a size for a test: short with -short, full under make soak, otherwise ordinary. A race build uses a
// tenth of it.
func sized(short, ordinary, full int) int {
	n := ordinary
	switch {
	case soak.On():
		n = full
	case testing.Short():
		n = short
	}
	if raceEnabled {
		n = max(1, n/10)
	}
	return n
}

// explore runs p under the schedules of package sim. None may fail, and every condition that p gives to Sometimes must
// occur.
func explore(t *testing.T, p func(ctx context.Context, s *sim.Sim), opts ...sim.Option) {
	t.Helper()
	n := 2_500
	if testing.Short() {
		n = 250
	}
	res := sim.Explore(p, append([]sim.Option{sim.WithSchedules(n)}, opts...)...)
	if res.Failure != nil {
		t.Fatal(res.Failure)
	}
	if !res.Complete && res.Schedules < n {
		t.Errorf("only %d schedules", res.Schedules)
	}
	if len(res.Never) > 0 && !testing.Short() {
		t.Errorf("never in %d schedules: %v", res.Schedules, res.Never)
	}
}

// run runs fn in a nursery on the default runtime.
func run(t *testing.T, fn func(ctx context.Context, n *coir.Nursery) error) {
	t.Helper()
	if err := coir.Run(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}
