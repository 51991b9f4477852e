//go:build corpus

package corpus

import (
	"sync"
	"testing"
)

// A job queue with room for one job has one condition for both sides, and every change wakes one waiting goroutine. Let
// two workers and a producer wait. A worker that takes a job can wake the other worker, which finds nothing and waits
// again, while the producer, for whom there is room now, sleeps on.
//
// Class: lost
// Expect: deadlock

type slotQueue interface {
	put(job int)
	take() int
}

type oneCondQueue struct {
	mu      sync.Mutex
	changed *sync.Cond
	jobs    []int
}

func newOneCondQueue() *oneCondQueue {
	q := &oneCondQueue{}
	q.changed = sync.NewCond(&q.mu)
	return q
}

func (q *oneCondQueue) put(job int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.jobs) == 1 {
		q.changed.Wait()
	}
	q.jobs = append(q.jobs, job)
	q.changed.Signal()
}

func (q *oneCondQueue) take() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.jobs) == 0 {
		q.changed.Wait()
	}
	job := q.jobs[0]
	q.jobs = q.jobs[1:]
	q.changed.Signal()
	return job
}

type twoCondQueue struct {
	mu       sync.Mutex
	notEmpty *sync.Cond
	notFull  *sync.Cond
	jobs     []int
}

func newTwoCondQueue() *twoCondQueue {
	q := &twoCondQueue{}
	q.notEmpty = sync.NewCond(&q.mu)
	q.notFull = sync.NewCond(&q.mu)
	return q
}

func (q *twoCondQueue) put(job int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.jobs) == 1 {
		q.notFull.Wait()
	}
	q.jobs = append(q.jobs, job)
	q.notEmpty.Signal()
}

func (q *twoCondQueue) take() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.jobs) == 0 {
		q.notEmpty.Wait()
	}
	job := q.jobs[0]
	q.jobs = q.jobs[1:]
	q.notFull.Signal()
	return job
}

func runSlotQueue(t *testing.T, q slotQueue) {
	var took [2]int
	var wg sync.WaitGroup
	for i := range took {
		wg.Go(func() { q.put(i + 1) })
		wg.Go(func() { took[i] = q.take() })
	}
	wg.Wait()
	if took[0]+took[1] != 3 {
		t.Errorf("took jobs %v, want 1 and 2", took)
	}
}

func TestBugSlotQueue(t *testing.T) {
	runSlotQueue(t, newOneCondQueue())
}

func TestFixedSlotQueue(t *testing.T) {
	runSlotQueue(t, newTwoCondQueue())
}
