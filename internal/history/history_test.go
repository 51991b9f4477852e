package history

// Random histories, and a check that a difference would be noticed, because a test that never fails may check nothing.

import (
	"context"
	"flag"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/model"
	"github.com/coir-go/coir/internal/soak"
)

var seedFlag = flag.Uint64("seed", 0, "play one random history again")

func newRuntime(t *testing.T, workers int) *coir.Runtime {
	t.Helper()
	rt := coir.NewRuntime(coir.WithWorkers(workers))
	t.Cleanup(func() {
		if err := rt.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return rt
}

// Spec: CH-01 (one channel type, four kinds)
// Spec: CH-11 (nobody waits for what is there)
// Spec: CH-17 (the overflow policy decides a full send)
// Spec: CH-18 (dropped values are counted and handed over)
// Spec: CH-19 (waiters are served in order)
// Spec: CH-20 (a waiting operation beats a passing one)
// Spec: CH-22 (Try never waits and changes nothing)
// Spec: CH-25 (one of data, close, cancel and timeout wins)
// Spec: CH-26 (a failed send keeps its value)
// Spec: CH-28 (an ended wait is unlinked before it returns)
// Spec: CH-35 (close is graceful)
// Spec: CH-37 (abort is the hard close)
// Spec: CH-40 (no value is lost silently)
// Spec: SE-01 (a select completes one case)
// Spec: SE-03 (a losing case has no effect)
// Spec: SE-05 (losing registrations are removed first)
// Spec: SE-08 (SelectPriority takes the first ready case)
// Spec: SE-16 (a select never matches itself)
func TestRandomHistories(t *testing.T) {
	histories := 600
	switch {
	case soak.On():
		histories = 100_000
	case testing.Short():
		histories = 100
	}
	for _, workers := range []int{1, 3} {
		rt := newRuntime(t, workers)
		for range histories {
			seed := *seedFlag
			if seed == 0 {
				seed = rand.Uint64()
			}
			rnd := rand.New(rand.NewPCG(seed, 0))
			data := make([]byte, Chans+StepBytes*rnd.IntN(80))
			for i := range data {
				data[i] = byte(rnd.Uint32())
			}
			if story, err := Play(rt, data); err != nil {
				t.Fatalf("%v\nafter\n%s\nreplay: go test -run '^%s$' -seed %d", err, story, t.Name(), seed)
			}
		}
	}
}

// TestDifferenceIsSeen pairs real channels with models of another kind. Each history must show a difference.
func TestDifferenceIsSeen(t *testing.T) {
	const bounded1, unbounded, conflated, dropNewest = 1 * 4, 4 * 4, 5 * 4, 1*4 + 2
	sends := func(clients ...int) (steps []step) {
		for _, c := range clients {
			steps = append(steps, step{verb: send, client: c, cases: []choice{{model.Send, 0}}})
		}
		return steps
	}
	receives := step{verb: tryRecv, client: 3, cases: []choice{{model.Recv, 0}}}
	for _, c := range []struct {
		name        string
		real, model int
		steps       []step
		want        string
	}{
		{"waits, need not", 0, bounded1, sends(0), "fiber 0 waits, and need not"},
		{"does not wait, must", bounded1, 0, sends(0), "want it to wait"},
		{"goroutine does not wait, must", unbounded, 0, sends(fibers), "want it to wait"},
		{"waits, and is not woken", 0, bounded1, sends(0), "fiber 0 waits"},
		{"drops, must wait", conflated, bounded1, sends(0, 1), "want it to wait"},
		{"drops the other one", conflated, dropNewest, sends(0, 1), "channel a shows"},
		{"delivers another value", conflated, unbounded, append(sends(0, 1), receives), "channel a shows"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := new(history)
			p := h.newPair(c.real)
			p.model = h.newPair(c.model).model
			h.chans = []*pair{p}
			err := h.run(newRuntime(t, 1), c.steps)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("the error is %v; want one that says %q", err, c.want)
			}
		})
	}
}

// A few bytes are a history without steps, and no bytes are a history without channels.
func TestShortHistories(t *testing.T) {
	rt := newRuntime(t, 1)
	for n := range Chans + StepBytes {
		if story, err := Play(rt, make([]byte, n)); err != nil {
			t.Errorf("%d bytes: %v\n%s", n, err, story)
		}
	}
}
