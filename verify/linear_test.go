package verify

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/soak"
)

// Channels are linearizable: whatever several clients do concurrently to one or two channels, there is an order in
// which the same operations, performed one after another, return the same results, and in which no operation comes
// before one that had returned when it was called. These tests record random histories of the real channels, and
// porcupine searches for that order.
//
// # What is proved of each history
//
// The specification (linear_model_test.go) is strict. An operation that waits has two steps, so that other operations
// can see its wait. Of the operations
//
//	Send, Recv, TrySend, TryRecv, SendTimeout, RecvTimeout, Select, SelectPriority, TrySelect, Close, Abort, Len, Stats
//
// every result needs a reason, including failures. A TryRecv that would have blocked found the channel empty and no
// sender waiting; a TrySend found it full and no receiver waiting. An operation that timed out or was cancelled had to
// wait, was not completed before it gave up, and consumed nothing. An operation that found the channel closed found no
// value left in it. Values are received in the order in which they were sent. Waiters are served in the order of
// arrival and before later operations. A select has the effect of exactly one of its clauses, and SelectPriority that
// of the first clause that could happen. Each value is received once, or passed to OnUndelivered once, by the operation
// that displaced it.
//
// # What is not proved
//
// The start of a wait cannot be seen from outside, except by its effects and by Stats, which counts the waiters. So a
// TrySend that wrongly reports that it would block is found only if Stats, or another operation, has shown that a
// receiver was waiting. Fairness of select, and how soon a cancellation or a timeout ends a wait, are not questions of
// order. That they do end the wait is checked: in the end nothing else ends such a wait, and a history whose clients do
// not end is reported.
//
// # What is not linearizable by nature
//
//   - Contexts. A cancellation ends waits one after another, so one wait may still succeed when another has already
//     been cancelled. It does hold that nothing is cancelled before the call of the cancel function, and that an
//     operation fails if its context had ended when it was called. If Close and Abort overlap, the cause in the error
//     of a closed channel is decided after the operation.
//   - SendMany and RecvMany: each value is a separate send or receive, and other operations may come in between.
//   - All is a Recv for each value.
//   - Two calls of Len or Stats, or Len of two channels: each is about its own moment. The counters of failures in
//     Stats are incremented after the failure, and Dropped of an aborted channel grows while Abort passes the
//     remaining values to OnUndelivered.
//   - Selector.Wait: a registered case does not wait in its channel, so TrySend does not see it.
//
// # Running it
//
//	COIR_SOAK=1 go test -v -run TestLinearizable             many more histories
//	COIR_LINEAR_SEED=17 go test -v -run TestLinearizable     the history of one seed, again and again
//
// A seed determines the plan. The scheduler decides the order of events, so one seed has many histories.

// TestLinearizable checks that every history has an order that explains it.
//
// Spec: CH-03 (a rendezvous send returns when the value is taken)
// Spec: CH-05 (a taken value resumes one sender)
// Spec: CH-06 (a bounded channel holds its capacity)
// Spec: CH-07 (a send with room does not wait)
// Spec: CH-08 (a receive takes the oldest)
// Spec: CH-09 (a send prefers a waiting receiver)
// Spec: CH-10 (room goes to the longest-waiting sender)
// Spec: CH-11 (nobody waits for what is there)
// Spec: CH-12 (a conflated send never waits)
// Spec: CH-13 (a conflated receive empties the channel)
// Spec: CH-14 (conflated is bounded 1 that drops the oldest)
// Spec: CH-15 (an unbounded send never waits)
// Spec: CH-17 (the overflow policy decides a full send)
// Spec: CH-18 (dropped values are counted and handed over)
// Spec: CH-19 (waiters are served in order)
// Spec: CH-20 (a waiting operation beats a passing one)
// Spec: CH-21 (one sender's values stay in order)
// Spec: CH-22 (Try never waits and changes nothing)
// Spec: CH-24 (a cancelled wait tells the cause)
// Spec: CH-25 (one of data, close, cancel and timeout wins)
// Spec: CH-26 (a failed send keeps its value)
// Spec: CH-29 (a send is admitted if it sees the channel open)
// Spec: CH-30 (a send that is not admitted transfers nothing)
// Spec: CH-31 (an admitted send transfers or waits)
// Spec: CH-32 (how a receive is admitted)
// Spec: CH-33 (a receive on a drained closed channel fails at once)
// Spec: CH-34 (close is one step)
// Spec: CH-35 (close is graceful)
// Spec: CH-36 (a drained closed channel ends its receivers)
// Spec: CH-37 (abort is the hard close)
// Spec: CH-38 (close and abort are idempotent)
// Spec: CH-40 (no value is lost silently)
// Spec: CH-41 (a send on a closed channel is an error)
// Spec: CH-42 (closed and count are one state)
// Spec: CH-55 (a value that was claimed is reported)
// Spec: CH-56 (a cancelled wait takes no value and no place)
// Spec: SE-01 (a select completes one case)
// Spec: SE-02 (all cases claim through one word)
// Spec: SE-03 (a losing case has no effect)
// Spec: SE-06 (a ready case needs no registration)
// Spec: SE-08 (SelectPriority takes the first ready case)
// Spec: SE-09 (TrySelect never waits)
// Spec: SE-15 (two selects match with one case each)
// Spec: SE-16 (a select never matches itself)
// Spec: SE-17 (close wakes a receiving case, abort a sending one)
// Spec: SE-19 (a late completion stays with its sender)
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

// histories returns the number of histories to judge.
func histories() int {
	switch {
	case soak.On():
		return 200_000
	case testing.Short():
		return 1000
	}
	return 5000
}

// newRuntimes returns a runtime for each number of workers.
func newRuntimes(t *testing.T) map[int]*coir.Runtime {
	rts := make(map[int]*coir.Runtime)
	for workers := 2; workers <= 4; workers++ {
		rts[workers] = coir.NewRuntime(coir.WithWorkers(workers))
		t.Cleanup(func() { closeSoon(t, rts[workers]) })
	}
	return rts
}

// judge runs a history, and fails the test if nothing explains it.
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
