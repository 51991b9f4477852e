package sim

import (
	"context"

	"github.com/coir-go/coir/internal/replay"
	"github.com/coir-go/coir/internal/search"
)

// shrink makes a failing schedule smaller: fewer decisions that are not 0, as long as it fails in the same way.
//
// Spec: SM-07 (a failing schedule is made smaller)
func (w *world) shrink(ctx context.Context, s *Sim, fn func(context.Context, *Sim), f *Failure) *Failure {
	if _, ok := w.strategy.(*drawn); ok {
		return f // see Drawn
	}
	best := f
	failed := replay.Run{Fails: true, Steps: f.Steps}
	for _, d := range f.script {
		failed.Decisions = append(failed.Decisions, replay.Decision{Way: d})
	}
	var course search.Course
	run := func() replay.Run {
		r, g := w.replayed(ctx, s, fn, nil, &course)
		if g != nil && g.Kind == KindBlocked {
			r.Steps = cutSteps / 10 // each run takes real time, so try few
		}
		if r.Fails = g != nil && g.Kind == f.Kind; r.Fails {
			r.Steps = g.Steps
			if turns, values, ok := course.Ran(); ok {
				r.Course = &replay.Course{Turns: turns, Values: values}
			}
			if g.Switches < best.Switches || g.Switches == best.Switches && g.Steps < best.Steps {
				g.Schedule, g.Strategy, g.Seed = f.Schedule, f.Strategy, f.Seed
				best = g
			}
		}
		return r
	}
	_, whole := replay.Shrink(failed, func(script []int) replay.Run {
		course.Script(script)
		return run()
	}, func(c *replay.Course) replay.Run {
		course.Follow(c.Turns, c.Values)
		return run()
	}, cutSteps, searchSteps)
	best.cut = !whole
	return best
}

// replayed is like follow. It also returns the decisions and the number of steps.
func (w *world) replayed(
	ctx context.Context, s *Sim, fn func(context.Context, *Sim), script []int, rest search.Strategy,
) (r replay.Run, f *Failure) {
	f = w.follow(ctx, s, fn, script, rest)
	r = replay.Run{Fails: f != nil, Steps: w.nsteps}
	for _, d := range w.decisions[:w.ndec] {
		r.Decisions = append(r.Decisions, replay.Decision{Way: d.chosen, Ways: d.of, Fault: d.fault})
	}
	return r, f
}

// cutSteps limits the first part to seconds; only very long schedules with very many switches reach it. searchSteps
// limits the search for the fewest switches to a part of a second, and joining turns to a few times that.
const (
	cutSteps    = 20_000_000
	searchSteps = 1_000_000
)
