package sim

import (
	"bytes"
	"testing"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/inspect"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/race"
)

// TestLabelsAndRecordersChangeNoSchedule: a runtime with labels and a recorder makes the same decisions, and its fibers
// the same steps.
//
// Spec: SM-05 (a token replays its schedule)
func TestLabelsAndRecordersChangeNoSchedule(t *testing.T) {
	if race.Enabled {
		t.Skip("the clock of a simulation calls the recorder in two hidden sections, so that its lock is hidden too")
	}
	failures := 0
	for _, b := range corpus {
		for seed := uint64(1); seed <= uint64(scaled(sized(2, 10))); seed++ {
			recorder := inspect.NewRecorder(1000)
			fn, set := b.make(false), settle(append(b.opts, WithSeed(seed), WithSchedules(300)))
			plain, _ := newWorld(set.mode, set.limit).failing(fn, &set)
			w := newWorld(set.mode, set.limit)
			w.rt = coir.NewRuntime(policy.Option(w).(coir.RuntimeOption), coir.WithClock(w.clock),
				coir.OnStall(stallAfter, w.watch), coir.WithLabels(), coir.WithObserver(recorder))
			seen, _ := w.failing(fn, &set)
			if plain == nil && seen == nil {
				continue
			}
			if failures++; plain == nil || seen == nil {
				t.Fatalf("%s, seed %d: it fails with %v, and with labels and a recorder with %v", b.name, seed, plain, seen)
			}
			sameRun(t, plain, seen, nil)
			var trace bytes.Buffer
			if err := recorder.WriteTrace(&trace, 0); err != nil || trace.Len() < 1000 {
				t.Errorf("%s: the trace has %d bytes: %v", b.name, trace.Len(), err)
			}
		}
	}
	if t.Logf("%d failures", failures); failures == 0 {
		t.Error("no program fails: the test shows nothing")
	}
}
