package verify

import (
	"fmt"
	"testing"

	"github.com/coir-go/coir"
	played "github.com/coir-go/coir/internal/history"
	"pgregory.net/rapid"
)

// Random histories of channel operations are compared with the model. Package internal/history performs them; rapid
// draws them and finds the shortest one that shows a fault. It draws the same bytes that FuzzChan of the root package
// takes, so a history found here can be kept there as a seed.

// TestChanHistories tests each kind of channel with each policy in turn, together with two other channels of any kind.
// Several workers cause more races between fibers that have been woken.
//
// Spec: CH-01 (one channel type, four kinds)
// Spec: CH-11 (nobody waits for what is there)
// Spec: CH-12 (a conflated send never waits)
// Spec: CH-14 (conflated is bounded 1 that drops the oldest)
// Spec: CH-17 (the overflow policy decides a full send)
// Spec: CH-18 (dropped values are counted and handed over)
// Spec: CH-19 (waiters are served in order)
// Spec: CH-20 (a waiting operation beats a passing one)
// Spec: CH-22 (Try never waits and changes nothing)
// Spec: CH-25 (one of data, close, cancel and timeout wins)
// Spec: CH-26 (a failed send keeps its value)
// Spec: CH-28 (an ended wait is unlinked before it returns)
// Spec: CH-35 (close is graceful)
// Spec: CH-36 (a drained closed channel ends its receivers)
// Spec: CH-37 (abort is the hard close)
// Spec: CH-38 (close and abort are idempotent)
// Spec: CH-40 (no value is lost silently)
// Spec: SE-01 (a select completes one case)
// Spec: SE-03 (a losing case has no effect)
// Spec: SE-05 (losing registrations are removed first)
// Spec: SE-08 (SelectPriority takes the first ready case)
// Spec: SE-16 (a select never matches itself)
// Spec: SE-19 (a late completion stays with its sender)
func TestChanHistories(t *testing.T) {
	step := rapid.SliceOfN(rapid.Byte(), played.StepBytes, played.StepBytes)
	for _, workers := range []int{1, 2} {
		if workers > 1 && testing.Short() {
			break
		}
		rt := coir.NewRuntime(coir.WithWorkers(workers))
		defer closeSoon(t, rt)
		for kind := range byte(played.Kinds) {
			t.Run(fmt.Sprintf("workers=%d/kind=%d", workers, kind), func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					data := []byte{
						kind,
						rapid.ByteRange(0, played.Kinds-1).Draw(t, "kind of b"),
						rapid.ByteRange(0, played.Kinds-1).Draw(t, "kind of c"),
					}
					least := rapid.IntRange(0, 40).Draw(t, "least") // otherwise most histories would be short
					for _, s := range rapid.SliceOfN(step, least, 60).Draw(t, "steps") {
						data = append(data, s...)
					}
					if story, err := played.Play(rt, data); err != nil {
						t.Fatalf("%v\nafter\n%s\nas a seed: []byte(%q)", err, story, data)
					}
				})
			})
		}
	}
}
