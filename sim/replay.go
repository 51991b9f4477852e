package sim

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/coir-go/coir/internal/search"
)

// Replay decodes the token of a failure (token.go), runs the program under its decisions (chooser.script), and compares
// the operations with the hashes in the token.

// Replay runs fn under the schedule of a token. It returns the failure, or nil if fn did not fail. It needs the options
// [WithFaults] and [WithSteps] of the run that failed; the report shows them. If the program or these options have
// changed so that the schedule no longer fits, the kind of the failure is [KindDiverged].
func Replay(token string, fn func(ctx context.Context, s *Sim), opts ...Option) (*Failure, error) {
	// Spec: SM-05 (a token replays its schedule)
	r, err := decode(token)
	if err != nil {
		return nil, err
	}
	set := settle(opts)
	w := newWorld(r.mode, set.limit)
	w.quit, w.options = set.quit, set.replayed()
	var f *Failure
	left := w.inside(func(ctx context.Context) {
		w.script, w.tells = &search.Script{Ways: r.script}, true
		s := &Sim{w: w, faults: planFaults(set.faults)}
		s.faults.asks = true
		g := w.attended(ctx, s, fn, 0, false)
		if w.left() {
			return
		}
		f = g
		if h := w.hash; f != nil {
			h = f.hash
			switch {
			case f.Kind == KindDiverged:
				f.Text += "; the operations differ " + r.differs(f.hashes, f.Steps) + s.faults.unnamed()
			case fold(h) != r.hash:
				f = &Failure{Kind: KindDiverged, Text: changedText + "it fails, but the operations are not those that " +
					"were recorded; they differ " + r.differs(g.hashes, g.Steps) + s.faults.unnamed() + ": " + f.Text}
				f.freeze(w)
			}
		} else if fold(h) != r.hash {
			f = &Failure{Kind: KindDiverged}
			f.freeze(w)
			f.Text = changedText + "it does not fail under this schedule, and the operations are not " +
				"those that were recorded; they differ " + r.differs(f.hashes, f.Steps) + s.faults.unnamed()
		}
		w.tellStrays(f)
	})
	if left != nil {
		return left, nil
	}
	return f, nil
}

// changedText begins the text of each replay that diverges.
const changedText = "the program or its options have changed since: "

// replayed returns the options that decide, together with the token, what the program does, in the form of further
// arguments of Replay. The mode of the clock is in the token. Test does not need them, because they are in the source
// of the test.
func (set *settings) replayed() string {
	var b strings.Builder
	if len(set.faults) > 0 {
		b.WriteString(", sim.WithFaults(")
		for i, name := range set.faults {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(strconv.Quote(name))
		}
		b.WriteString(")")
	}
	if set.limit != defaultSteps {
		fmt.Fprintf(&b, ", sim.WithSteps(%d)", set.limit)
	}
	return b.String()
}
