//go:build corpus

package later

// A bounded queue uses one condition variable both for "not full" and for "not empty", and wakes one waiter at a time.
// With one producer and one consumer that is enough. With a second consumer, a signal meant for the waiting producer
// may wake a consumer, which finds the queue empty and sleeps again, and no goroutine is woken any more.
//
// Class: lost
// Expect: deadlock

import (
	"sync"
	"testing"
)

type bqRing struct {
	mu       sync.Mutex
	notEmpty *sync.Cond
	notFull  *sync.Cond
	items    []int
	limit    int
}

// newBqRing makes a queue for limit items with a shared condition variable.
func newBqRing(limit int) *bqRing {
	q := &bqRing{limit: limit}
	q.notEmpty = sync.NewCond(&q.mu)
	q.notFull = q.notEmpty
	return q
}

// newBqRingFixed makes a queue that has a condition variable for each side.
func newBqRingFixed(limit int) *bqRing {
	q := &bqRing{limit: limit}
	q.notEmpty = sync.NewCond(&q.mu)
	q.notFull = sync.NewCond(&q.mu)
	return q
}

func (q *bqRing) put(v int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.items) == q.limit {
		q.notFull.Wait()
	}
	q.items = append(q.items, v)
	q.notEmpty.Signal()
}

func (q *bqRing) get() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.items) == 0 {
		q.notEmpty.Wait()
	}
	v := q.items[0]
	q.items = q.items[1:]
	q.notFull.Signal()
	return v
}

func bqTransfer(t *testing.T, q *bqRing, consumers, each int) {
	sums := make([]int, consumers)
	var wg sync.WaitGroup
	for c := range consumers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range each {
				sums[c] += q.get()
			}
		}()
	}
	want := 0
	for v := 1; v <= consumers*each; v++ {
		q.put(v)
		want += v
	}
	wg.Wait()
	got := 0
	for _, s := range sums {
		got += s
	}
	if got != want {
		t.Errorf("consumers got a sum of %d, want %d", got, want)
	}
}

func TestBugBoundedQueueCond(t *testing.T) { bqTransfer(t, newBqRing(1), 2, 2) }

func TestFixedBoundedQueueCond(t *testing.T) { bqTransfer(t, newBqRingFixed(1), 2, 2) }
