package sched

import "github.com/coir-go/coir/internal/xatomic"

// list is the global queue. It holds tasks from outside, and those that overflowed a ring. It is intrusive and
// unbounded. A push holds the lock for a few stores, and never waits for room.
type list struct {
	n          xatomic.Int64 // read without the lock to see whether the list is empty
	mu         xatomic.Mutex
	head, tail *Task
}

// Spec: SC-06 (the global queue has no bound)
//
//go:norace
func (l *list) push(ts ...*Task) {
	l.mu.Lock()
	for _, t := range ts {
		t.link = nil
		if l.tail == nil {
			l.head = t
		} else {
			l.tail.link = t
		}
		l.tail = t
	}
	l.n.Add(int64(len(ts)))
	l.mu.Unlock()
}

// pop takes the oldest task, or returns nil.
//
//go:norace
func (l *list) pop() *Task {
	if l.n.Load() == 0 {
		return nil
	}
	l.mu.Lock()
	t := l.take()
	l.mu.Unlock()
	return t
}

//go:norace
func (l *list) take() *Task {
	if l.head == nil {
		return nil
	}
	l.n.Add(-1)
	return l.unlink().dequeue()
}

// unlink removes and returns the oldest task, which must exist. The caller adjusts n.
//
//go:norace
func (l *list) unlink() *Task {
	t := l.head
	l.head = t.link
	if l.head == nil {
		l.tail = nil
	}
	t.link = nil
	return t
}

// share takes one task and moves a worker's fair share of the rest into r, as far as there is room. Only the worker
// that owns r calls it. For a moment the moved tasks are in neither queue.
//
// Spec: SC-14 (a global batch is a fair share)
//
//go:norace
func (l *list) share(r *ring, workers int) *Task {
	if l.n.Load() == 0 {
		return nil
	}
	var some [ringSize / 2]*Task
	l.mu.Lock()
	t := l.take()
	n := min(int(l.n.Load())/workers, len(some), r.room())
	for i := range n {
		some[i] = l.unlink()
	}
	if n > 0 {
		l.n.Add(int64(-n))
	}
	l.mu.Unlock()
	r.pushAll(some[:n])
	return t
}

// look adds the oldest tasks of the list to found, up to most tasks.
//
//go:norace
func (l *list) look(found *finds, most int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for t := l.head; t != nil && most > 0; t = t.link {
		found.add(t)
		most--
	}
}
