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
		w.rest = &shared{Strategy: &course}
		r, g := w.replayed(ctx, s, fn, nil)
		w.rest = nil
		if g != nil && g.Kind == KindBlocked {
			r.Steps = cutSteps / 10 // that takes real time: try few
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

// replayed runs a schedule that makes the decisions of script first. It returns what was decided and how many steps
// were done, and the failure.
func (w *world) replayed(
	ctx context.Context, s *Sim, fn func(context.Context, *Sim), script []int,
) (r replay.Run, f *Failure) {
	w.script, w.scripted = script, true
	f = w.schedule(ctx, s, fn)
	w.scripted = false
	r = replay.Run{Fails: f != nil, Steps: w.nsteps}
	for _, d := range w.decisions[:w.ndec] {
		r.Decisions = append(r.Decisions, replay.Decision{Way: int(d.chosen), Ways: int(d.of)})
	}
	return r, f
}

// cutSteps bounds the first part to seconds; only very long schedules with very many switches reach it. searchSteps
// bounds the search for the fewest switches to a part of a second, and joining turns to a few times that.
const (
	cutSteps    = 20_000_000
	searchSteps = 1_000_000
)

// Replay runs fn under the schedule of a token. It returns the failure, or nil if fn did not fail. If the program has
// changed so that the schedule no longer fits, the kind of the failure is [KindDiverged].
func Replay(token string, fn func(ctx context.Context, s *Sim), opts ...Option) (*Failure, error) {
	// Spec: SM-05 (a token replays its schedule)
	r, err := decode(token)
	if err != nil {
		return nil, err
	}
	set := settle(opts)
	w := newWorld(r.mode, set.limit)
	w.quit = set.quit
	var f *Failure
	left := w.inside(func(ctx context.Context) {
		w.script, w.scripted, w.tells = r.script, true, true
		g := w.schedule(ctx, &Sim{w: w, faults: planFaults(set.faults)}, fn)
		if w.left() {
			return
		}
		f = g
		if h := w.hash; f != nil {
			h = f.hash
			switch {
			case f.Kind == KindDiverged:
				f.Text += "; the operations differ " + r.differs(f.hashes, f.Steps)
			case uint32(h^h>>32) != r.hash:
				f = &Failure{Kind: KindDiverged, Text: "the program has changed since: it fails, but the operations are not " +
					"those that were recorded; they differ " + r.differs(g.hashes, g.Steps) + ": " + f.Text}
				f.freeze(w)
			}
		} else if uint32(h^h>>32) != r.hash {
			f = &Failure{Kind: KindDiverged}
			f.freeze(w)
			f.Text = "the program has changed since: it does not fail under this schedule, and the operations are not " +
				"those that were recorded; they differ " + r.differs(f.hashes, f.Steps)
		}
		w.tellStrays(f)
	})
	if left != nil {
		return left, nil
	}
	return f, nil
}
