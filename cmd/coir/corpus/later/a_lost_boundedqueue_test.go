//go:build corpus

package later

import (
	"sync"
	"testing"
)

// A bounded job queue uses one condition variable for both "not empty" and "not full", and wakes one waiter at a
// time. With one producer or one consumer that works. With two of each, a consumer that has made room can wake the
// other consumer instead of the blocked producer; that one finds nothing, sleeps again, and the wake-up is gone.
//
// Class: lost
// Expect: deadlock
type boundedJobs struct {
	mu      sync.Mutex
	changed *sync.Cond
	limit   int
	jobs    []int
	wake    func()
}

func newBoundedJobs(limit int) *boundedJobs {
	q := &boundedJobs{limit: limit}
	q.changed = sync.NewCond(&q.mu)
	q.wake = q.changed.Signal
	return q
}

func (q *boundedJobs) Put(job int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.jobs) == q.limit {
		q.changed.Wait()
	}
	q.jobs = append(q.jobs, job)
	q.wake()
}

func (q *boundedJobs) Take() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.jobs) == 0 {
		q.changed.Wait()
	}
	job := q.jobs[0]
	q.jobs = q.jobs[1:]
	q.wake()
	return job
}

func runBoundedJobs(t *testing.T, q *boundedJobs, pairs int) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	sum, want := 0, 0
	for i := 1; i <= pairs; i++ {
		want += i
		wg.Add(2)
		go func() {
			defer wg.Done()
			job := q.Take()
			mu.Lock()
			sum += job
			mu.Unlock()
		}()
		go func(job int) {
			defer wg.Done()
			q.Put(job)
		}(i)
	}
	wg.Wait()
	if sum != want {
		t.Errorf("jobs taken add up to %d, want %d", sum, want)
	}
}

func TestBugBoundedJobs(t *testing.T) {
	runBoundedJobs(t, newBoundedJobs(1), 2)
}

func TestFixedBoundedJobs(t *testing.T) {
	q := newBoundedJobs(1)
	q.wake = q.changed.Broadcast
	runBoundedJobs(t, q, 2)
}
