package sim

import (
	"fmt"

	"github.com/coir-go/coir/internal/search"
)

// Strategy chooses schedules. It decides wherever a schedule can continue in more than one way.
type Strategy interface {
	// Begin is called before each schedule, with its number from 0. It returns false if there is nothing left to
	// explore.
	Begin(schedule int) bool
	// Choose returns a number below f.N. Way 0 changes the least.
	Choose(f *Fork) int
	// Name returns the strategy's name for -sim.strategy.
	Name() string
}

// Fork is a point at which a schedule can continue in more than one way.
type Fork struct {
	N    int  // the number of ways
	Keep bool // way 0 is that the running fiber continues

	// After is true after an operation that did not wait: the running fiber has performed it, and way 0 is to continue
	// with the code after it. After implies Keep.
	After bool

	w *world
}

// Step returns how many operations the schedule has performed.
//
//go:norace
func (f *Fork) Step() int { return f.w.nsteps }

// Fiber returns the number of the fiber that way i lets run, in the order of creation. It is negative if way i is
// something else: the clock advances, or a case of a select, a fault or a random number is chosen.
//
//go:norace
func (f *Fork) Fiber(i int) int { return f.w.Actor(i) }

// shared is a strategy of package search.
type shared struct {
	search.Strategy
	fork search.Fork
}

// Choose implements Strategy.
//
//go:norace
func (s *shared) Choose(f *Fork) int {
	s.fork = search.Fork{N: f.N, Keep: f.Keep, After: f.After, World: f.w}
	return s.Strategy.Choose(&s.fork)
}

// Actor implements search.World.
//
//go:norace
func (w *world) Actor(i int) int {
	if w.ways[0] == search.Value {
		return search.Value
	}
	return int(w.ways[i])
}

// Actors implements search.World.
//
//go:norace
func (w *world) Actors() int { return w.nfibers }

// Running implements search.World. A value is identified by what it decides: whether the schedule has a fault; whether
// that fault happens now, in a fiber; or another value for a fiber. So if a schedule does not have a fault, the other
// values remain those that they were.
//
//go:norace
func (w *world) Running() int {
	if w.ways[0] != search.Value || w.sim == nil {
		return int(w.current)
	}
	n := len(w.sim.faults.sites)
	if w.fault.whole {
		return w.fault.site - 1
	}
	return n + (n+1)*int(w.current) + w.fault.site
}

// Moves implements search.World.
//
//go:norace
func (w *world) Moves(i int) int32 { return w.fibers[i].moves }

// Logged implements search.World.
//
//go:norace
func (w *world) Logged() int { return w.log.n }

// Site implements search.World. The lines of fibers are not known.
//
//go:norace
func (w *world) Site() int { return 0 }

// RoundRobin lets the fibers take turns of one operation each. It has one schedule.
func RoundRobin() Strategy { return &shared{Strategy: search.RoundRobin()} }

// Random takes each way with the same probability.
func Random(seed uint64) Strategy { return &shared{Strategy: search.Random(seed, 0)} }

// PCT gives fibers random priorities, and always runs the fiber with the highest priority. At depth-1 random places the
// running fiber falls below all others. PCT finds bugs that need few switches at the right places, and starvation.
func PCT(seed uint64, depth int) Strategy {
	if depth < 1 {
		panic(fmt.Sprintf("sim: PCT with a depth of %d: write 1 or more; with 1 no fiber is moved", depth))
	}
	return &shared{Strategy: search.PCT(seed, depth)}
}

// Uniform takes each way in proportion to the number of operations expected after it, so that every interleaving has
// about the same probability. It learns these numbers from earlier schedules.
func Uniform(seed uint64) Strategy { return &shared{Strategy: search.Uniform(seed)} }

// Exhaustive runs all orders of coir operations, and of the code between them, with at most bound preemptions. A
// preemption is a switch away from a fiber that could continue. A negative bound means no bound. Code between two
// operations is one step, unless there is a [coir.Point] in it.
func Exhaustive(bound int) Strategy { return &shared{Strategy: search.Exhaustive(bound)} }

// Portfolio takes turns among strategies, because no single strategy finds every bug.
func Portfolio(strategies ...Strategy) Strategy {
	return &portfolio{search.Turns[Strategy]{All: strategies}}
}

type portfolio struct{ search.Turns[Strategy] }

func (s *portfolio) Name() string { return "portfolio" }

//go:norace
func (s *portfolio) Choose(f *Fork) int { return s.Current().Choose(f) }
