package sim

import (
	"context"

	"github.com/coir-go/coir/internal/search"
)

// How the token of a failure is replayed: Replay decodes it (token.go), runs the program under its decisions
// (world.script), and compares the operations with the hashes that the token has.

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
		w.script, w.tells = &search.Script{Ways: r.script}, true
		s := &Sim{w: w, faults: planFaults(set.faults)}
		g := w.attended(ctx, s, fn, 0, false)
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
