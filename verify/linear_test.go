package verify

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/coir-go/coir"
)

// Channels are linearizable: whatever several clients do at once to one or two channels, there is an order in which the
// same operations, one after the other, return the same, and in which nothing comes before what had returned when it was
// called. Random histories of the real channels are recorded, and porcupine looks for that order.
//
// # What is proved of each history
//
// The specification (linear_model_test.go) is the strict one. An operation that waits has two steps, so that it is seen
// while it waits, and of the operations
//
//	Send, Recv, TrySend, TryRecv, SendTimeout, RecvTimeout, Select, SelectPriority, TrySelect, Close, Abort, Len, Stats
//
// every result needs a reason, failures too: a TryRecv that would have had to wait found the channel empty and nobody
// sending; a TrySend found it full and nobody receiving; whoever timed out or was cancelled had to wait, was completed
// by nobody from then until it gave up, and consumed nothing; who is told that a channel is closed finds nothing left
// in it. Values come out in the order in which they went in, those who wait are served in the order in which they came
// and before those who pass by, a select has the effect of one of its clauses and of no other, and SelectPriority that
// of the first which could happen. Each value is received once, or handed to OnUndelivered once, by the operation that
// has displaced it.
//
// # What is not
//
// When a wait begins cannot be seen from outside, except by its effects and by Stats, which counts those who wait. So a
// TrySend that would block in spite of a receiver is found only where Stats, or another operation, has shown that the
// receiver waited. That a select is fair, and how soon a cancel or a time ends a wait, are not questions of order. That
// they end it at all is seen to: a client with such a wait is helped by nothing else in the end, and a history whose
// clients do not end is reported.
//
// # What is not linearizable by nature
//
//   - Contexts. A cancel ends waits one after the other, so that one may still succeed when another has been cancelled.
//     What holds: nothing is cancelled before a cancel was called, and an operation that is called when its context is over
//     fails. Which cause the error of a closed channel has is decided after the operation, when Close and Abort overlap.
//   - SendMany and RecvMany: each value by itself is a send or a receive, others may come between.
//   - All is a Recv for each value.
//   - Two calls of Len or Stats, or Len of two channels: each tells of a moment of its own. The counters of failures in
//     Stats are counted after the failure, and Dropped of an aborted channel grows while Abort hands over what was left.
//   - Selector.Wait: a registered case does not wait in its channel, so TrySend does not see it.
//
// # Running it
//
//	COIR_SOAK=1 go test -v -run TestLinearizable             many more histories
//	COIR_LINEAR_SEED=17 go test -v -run TestLinearizable     the history of one seed, again and again
//
// A seed gives the plan. What happens when is the scheduler's business, so one seed has many histories.

// TestLinearizable: every history has an order that explains it.
//
// Spec: CH-03, CH-05, CH-06, CH-07, CH-08, CH-09, CH-10, CH-11, CH-12, CH-13, CH-14, CH-15, CH-17, CH-18, CH-19, CH-20,
// CH-21, CH-22, CH-24, CH-25, CH-26, CH-29, CH-30, CH-31, CH-32, CH-33, CH-34, CH-35, CH-36, CH-37, CH-38, CH-40, CH-41,
// CH-42, CH-55, CH-56, SE-01, SE-02, SE-03, SE-06, SE-08, SE-09, SE-15, SE-16, SE-17, SE-19
func TestLinearizable(t *testing.T) {
	rts := newRuntimes(t)
	n := histories()
	if text := os.Getenv("COIR_LINEAR_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		must(t, err)
		for range n {
			judge(t, planHistory(seed), rts)
		}
		return
	}
	done, began := 0, time.Now()
	for kind, s := range shapes {
		t.Run(s.String(), func(t *testing.T) {
			operations, beside := 0, 0
			for seed := kind; seed < n; seed += len(shapes) {
				h := planHistory(uint64(seed))
				judge(t, h, rts)
				all, together := h.overlap()
				operations, beside = operations+all, beside+together
				if done++; done%10_000 == 0 && testing.Verbose() {
					fmt.Fprintf(os.Stderr, "%d of %d histories after %v\n", done, n, time.Since(began).Round(time.Second))
				}
			}
			t.Logf("%d operations of clients, %d of them while another ran", operations, beside)
		})
	}
}

// histories is how many are judged.
func histories() int {
	switch {
	case os.Getenv("COIR_SOAK") == "1":
		return 200_000
	case testing.Short():
		return 1000
	}
	return 5000
}

// newRuntimes has a runtime for each number of workers.
func newRuntimes(t *testing.T) map[int]*coir.Runtime {
	rts := make(map[int]*coir.Runtime)
	for workers := 2; workers <= 4; workers++ {
		rts[workers] = coir.NewRuntime(coir.Workers(workers))
		t.Cleanup(func() { closeSoon(t, rts[workers]) })
	}
	return rts
}

// judge runs a history and fails the test if nothing explains it.
func judge(t *testing.T, h *history, rts map[int]*coir.Runtime) {
	t.Helper()
	if !h.run(rts[h.workers]) {
		t.Fatalf("seed %d: the clients have not ended\n%v", h.seed, h)
	}
	bad := h.verdict()
	if bad == "" {
		return
	}
	spec, steps := h.model().porcupine()
	_, info := porcupine.CheckOperationsVerbose(spec, steps, time.Minute)
	seen := "nowhere"
	if file, err := os.CreateTemp("", "linear-*.html"); err == nil {
		if porcupine.Visualize(spec, info, file) == nil && file.Close() == nil {
			seen = file.Name()
		}
	}
	t.Fatalf("seed %d: %s\n%v\nto be seen in %s; to try again: COIR_LINEAR_SEED=%d go test -v -run TestLinearizable",
		h.seed, bad, h, seen, h.seed)
}
