package sim

import (
	"context"
	"slices"
)

// shrink makes a failing schedule smaller: fewer decisions that are not 0, as long as it fails in the same way. First whole
// stretches are set to 0, halving their length down to one. That ends where no single one can be spared, often far from the fewest: so
// then all schedules with none, one, two, ... decisions that are not 0 are tried, for as long as there are fewer than that and it does not take
// too long.
//
// Spec: SM-07 (a failing schedule is made smaller)
func (w *world) shrink(ctx context.Context, s *Sim, fn func(context.Context, *Sim), f *Failure) *Failure {
	if _, ok := w.strategy.(*drawn); ok {
		return f // see Drawn
	}
	best, steps := f, 0
	try := func(script []int) bool {
		w.script, w.scripted = script, true
		g := w.schedule(ctx, s, fn)
		steps += w.nsteps
		w.scripted = false
		if g == nil || g.Kind != best.Kind || g.Switches > best.Switches || g.Switches == best.Switches && g.Steps >= best.Steps {
			return false
		}
		g.Schedule, g.Strategy, g.Seed = f.Schedule, f.Strategy, f.Seed
		best = g
		return true
	}
	for size := len(best.script); size > 0; size /= 2 {
		for at := 0; at < len(best.script) && steps < cutSteps; at += size {
			if end := min(at+size, len(best.script)); slices.ContainsFunc(best.script[at:end], func(d int) bool { return d != 0 }) {
				script := slices.Clone(best.script)
				clear(script[at:end])
				try(script)
			}
		}
	}
	steps = 0
	// try script, and then with up to more decisions that are not 0 behind it.
	var deepen func(script []int, more int) bool
	deepen = func(script []int, more int) bool {
		if steps > shrinkSteps {
			return false
		}
		if try(script) {
			return true
		}
		if more == 0 {
			return false
		}
		ways := slices.Clone(w.decisions[:w.ndec])
		for at := len(script); at < len(ways); at++ {
			for d := 1; d < int(ways[at].of); d++ {
				next := make([]int, at+1)
				copy(next, script)
				next[at] = d
				if deepen(next, more-1) {
					return true
				}
			}
		}
		return false
	}
	for n := 0; n < best.Switches && !deepen(nil, n); n++ {
	}
	return best
}

// cutSteps bounds the first part, which only very long schedules with very many switches come to: seconds. shrinkSteps bounds the search
// for the fewest: a part of a second.
const (
	cutSteps    = 20_000_000
	shrinkSteps = 200_000
)

// Replay runs fn under the schedule of a token. It returns how it failed; nil means that it did not. If the program has changed so
// that the schedule does not fit any more, the failure says Diverged.
func Replay(token string, fn func(ctx context.Context, s *Sim), opts ...Option) (*Failure, error) {
	// Spec: SM-05 (a token replays its schedule)
	r, err := decode(token)
	if err != nil {
		return nil, err
	}
	set := settle(opts)
	w := newWorld(r.mode, set.limit)
	var f *Failure
	left := w.inside(func(ctx context.Context) {
		w.script, w.scripted = r.script, true
		g := w.schedule(ctx, &Sim{w: w, faults: planFaults(set.faults)}, fn)
		if w.left() {
			return
		}
		f = g
		if h := w.hash; f != nil {
			h = f.hash
			if uint32(h^h>>32) != r.hash && f.Kind != Diverged {
				f = &Failure{Kind: Diverged, Text: "the program has changed since: it fails, but the operations are not those that were recorded: " + f.Text}
				f.freeze(w)
			}
		} else if uint32(h^h>>32) != r.hash {
			f = &Failure{Kind: Diverged, Text: "the program has changed since: it does not fail under this schedule, and the operations are not those that were recorded"}
			f.freeze(w)
		}
		w.tellStrays(f)
	})
	if left != nil {
		return left, nil
	}
	return f, nil
}
