package snapshot_test

import (
	"fmt"
	"time"

	"github.com/coir-go/coir/snapshot"
)

// Two transfers lock the same accounts in different orders. The snapshots are written by hand here; a program gets its
// snapshots from coir.Runtime.Snapshot.
func ExampleExplain() {
	now := time.Date(2026, 11, 18, 12, 0, 0, 0, time.UTC)
	take := func(at time.Time) *snapshot.Snapshot {
		waits := func(id uint64, name, text string, object uint64) snapshot.Fiber {
			return snapshot.Fiber{
				ID: id, Name: name, State: snapshot.StateWaiting, Waits: 5, Since: now.Add(-3100 * time.Millisecond),
				Wait: []snapshot.Wait{{Kind: snapshot.WaitUse, Text: text, Object: object}},
			}
		}
		return &snapshot.Snapshot{
			Taken: at,
			Fibers: []snapshot.Fiber{
				waits(1, "transfer[0]", "to lock B", 12),
				waits(2, "transfer[1]", "to lock A", 11),
			},
			Objects: []snapshot.Object{
				{ID: 11, Kind: "mutex", Name: "A", Holders: []uint64{1}, Ends: "unlock"},
				{ID: 12, Kind: "mutex", Name: "B", Holders: []uint64{2}, Ends: "unlock"},
			},
		}
	}

	earlier := take(now.Add(-time.Second))
	later := take(now)
	for _, x := range snapshot.Explain(earlier, later) {
		fmt.Println(x.Kind, x.Certain)
		fmt.Println(x.Text)
	}
	// Output:
	// deadlock true
	// transfer[0] waits to lock B, held by transfer[1], which waits to lock A, held by transfer[0]: a deadlock, for 3.1s
}

// Three payments wait for answers. One has waited for a long time, and is shown by itself.
func ExampleGroups() {
	fibers := []snapshot.Fiber{{ID: 1, Name: "pay[0]"}, {ID: 2, Name: "pay[1]"}, {ID: 3, Name: "pay[2]"}}
	why := []snapshot.Explanation{{Kind: snapshot.ProblemTicketOld, Fibers: []uint64{2}}}
	groups, size := snapshot.NewGroups(why), map[string]int{}
	var key []byte
	for i := range fibers {
		key = groups.AppendKey(key[:0], &fibers[i])
		size[string(key)]++
	}
	for i := range fibers {
		key = groups.AppendKey(key[:0], &fibers[i])
		fmt.Println(fibers[i].Name, size[string(key)])
	}
	// Output:
	// pay[0] 2
	// pay[1] 1
	// pay[2] 2
}
