package sim

import (
	"cmp"
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
	left := w.runInFiber(func(ctx context.Context) {
		w.tells = true
		s, g := w.runScript(ctx, r.script, planFaults(set.faults), fn)
		if w.left() {
			return
		}
		f = r.compared(w, s, g)
		w.tellStrays(f)
	})
	if left != nil {
		return left, nil
	}
	return f, nil
}

// runScript runs the schedule with the given decisions, those about faults among them.
func (w *world) runScript(
	ctx context.Context, script []int, faults faultPlan, fn func(ctx context.Context, s *Sim),
) (*Sim, *Failure) {
	w.script = &search.Script{Ways: script}
	s := &Sim{w: w, faults: faults}
	s.faults.asks = true
	return s, w.runChecked(ctx, s, fn, 0, false)
}

// compared returns the failure f of a replay, which may be nil, or a failure of KindDiverged if the operations were not
// the recorded ones.
func (r *recording) compared(w *world, s *Sim, f *Failure) *Failure {
	hash := w.hash
	if f != nil {
		hash = f.hash
	}
	diverged := f != nil && f.Kind == KindDiverged // a decision did not fit
	if !diverged && fold(hash) == r.hash {
		return f
	}
	d := &Failure{Kind: KindDiverged}
	d.freeze(w)
	now := cmp.Or(f, d)
	differ := "differ " + r.differs(now.hashes, now.Steps) + s.faults.unnamed()
	if diverged {
		f.Text += "; the operations " + differ
		return f
	}
	const others = "the operations are not those that were recorded; they "
	if f == nil {
		d.Text = changedText + "it does not fail under this schedule, and " + others + differ
	} else {
		d.Text = changedText + "it fails, but " + others + differ + ": " + f.Text
	}
	return d
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
