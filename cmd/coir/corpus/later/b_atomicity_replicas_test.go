//go:build corpus

package later

// Replicas of a counter each count in their own slot and merge by taking the larger value of each slot. merge
// copies its own slots, works out the result and stores it in a second step. An increment between copy and store
// is overwritten, and it is gone for good unless another replica had picked it up before.
//
// Class: atomicity
// Expect: fail

import (
	"sync"
	"testing"
)

type repSlots [2]int

type repCounter struct {
	mu    sync.Mutex
	self  int
	slots repSlots
}

func (r *repCounter) inc() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slots[r.self]++
}

func (r *repCounter) snapshot() repSlots {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.slots
}

func (s repSlots) total() int { return s[0] + s[1] }

func repJoin(a, b repSlots) repSlots {
	for i := range a {
		a[i] = max(a[i], b[i])
	}
	return a
}

func (r *repCounter) merge(other *repCounter) {
	joined := repJoin(r.snapshot(), other.snapshot())
	r.mu.Lock()
	r.slots = joined
	r.mu.Unlock()
}

// mergeFixed copies only the other replica, and never holds both locks.
func (r *repCounter) mergeFixed(other *repCounter) {
	theirs := other.snapshot()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slots = repJoin(r.slots, theirs)
}

func repScene(t *testing.T, merge func(dst, src *repCounter)) {
	a, b := &repCounter{self: 0}, &repCounter{self: 1}
	var wg sync.WaitGroup
	for _, r := range []*repCounter{a, b} {
		wg.Add(1)
		go func() {
			defer wg.Done()
			r.inc()
			r.inc()
		}()
	}
	wg.Add(1)
	go func() { // gossip
		defer wg.Done()
		merge(a, b)
		merge(b, a)
	}()
	wg.Wait()
	merge(a, b)
	merge(b, a)
	if ta, tb := a.snapshot().total(), b.snapshot().total(); ta != 4 || tb != 4 {
		t.Errorf("replicas say %d and %d, want 4", ta, tb)
	}
}

func TestBugReplicaMerge(t *testing.T) { repScene(t, (*repCounter).merge) }

func TestFixedReplicaMerge(t *testing.T) { repScene(t, (*repCounter).mergeFixed) }
