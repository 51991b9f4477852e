package verify

import (
	"fmt"
	"testing"

	"github.com/coir-go/coir"
	played "github.com/coir-go/coir/internal/history"
	"pgregory.net/rapid"
)

// Random histories of channel operations against the model: internal/history
// plays them, rapid draws them and finds the shortest that shows a fault. It
// draws the same bytes that FuzzChan of the root package takes, so that what is
// found here can be kept there as a seed.

// TestChanHistories has each kind of channel with each policy in turn, beside two
// others of any kind. Several workers make more of the races between those who
// have been woken.
//
// Spec: CH-01, CH-11, CH-12, CH-14, CH-17, CH-18, CH-19, CH-20, CH-22, CH-25, CH-26, CH-28, CH-35, CH-36, CH-37, CH-38, CH-40,
// SE-01, SE-03, SE-05, SE-08, SE-15, SE-16, SE-19
func TestChanHistories(t *testing.T) {
	step := rapid.SliceOfN(rapid.Byte(), played.StepBytes, played.StepBytes)
	for _, workers := range []int{1, 2} {
		if workers > 1 && testing.Short() {
			break
		}
		rt := coir.NewRuntime(coir.Workers(workers))
		defer closeSoon(t, rt)
		for kind := range byte(played.Kinds) {
			t.Run(fmt.Sprintf("workers=%d/kind=%d", workers, kind), func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					data := []byte{
						kind,
						rapid.ByteRange(0, played.Kinds-1).Draw(t, "kind of b"),
						rapid.ByteRange(0, played.Kinds-1).Draw(t, "kind of c"),
					}
					least := rapid.IntRange(0, 40).Draw(t, "least") // alone, most would be short
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
