package sched

import (
	"unsafe"

	"github.com/coir-go/coir/internal/xatomic"
)

const ringSize = 256 // a power of two

// ring is a worker's queue of runnable tasks. The worker pushes at the tail and pops at the head; thieves take from the
// head.
//
//	head <= tail, tail-head <= ringSize; places head..tail-1 hold tasks
//
// head moves by CAS, because everybody takes there. Only the worker moves tail. A thief copies the tasks that it wants
// and then moves head past them; if the CAS fails somebody else took one of them, and the copies are worthless. A place
// is written again only after head has passed it, and then the thief's CAS fails. So the places need no atomic access:
// what a thief may read in a race is a pointer, one word, and it is thrown away.
type ring struct {
	head  xatomic.Uint32
	tail  xatomic.Uint32
	place [ringSize]*Task
}

func (r *ring) len() int {
	head := r.head.Load() // first: tail only grows, so the difference cannot be negative
	return int(r.tail.Load() - head)
}

// push reports false if the ring is full. Only the worker calls it.
//
//go:norace
func (r *ring) push(t *Task) bool {
	tail := r.tail.Load()
	if tail-r.head.Load() == ringSize {
		return false
	}
	xatomic.Writes(unsafe.Pointer(&r.place[tail%ringSize]))
	r.place[tail%ringSize] = t
	r.tail.Store(tail + 1)
	return true
}

// pop takes the oldest. Only the worker calls it.
//
//go:norace
func (r *ring) pop() *Task {
	for {
		head := r.head.Load()
		if head == r.tail.Load() {
			return nil
		}
		xatomic.Reads(unsafe.Pointer(&r.place[head%ringSize]))
		t := r.place[head%ringSize]
		if r.head.CompareAndSwap(head, head+1) {
			return t
		}
	}
}

// grab takes half of what is there, rounded up, and at most len(into). It returns how many. Anybody may call it.
//
// Spec: SC-10 (a queue gives each entry to one taker)
// Spec: SC-15 (a thief takes half)
//
//go:norace
func (r *ring) grab(into []*Task) int {
	for {
		head := r.head.Load()
		n := r.tail.Load() - head
		if n > ringSize {
			continue // head moved between the two loads
		}
		n = min(n-n/2, uint32(len(into)))
		if n == 0 {
			return 0
		}
		for i := range n {
			from := &r.place[(head+i)%ringSize]
			xatomic.Reads(unsafe.Pointer(from))
			into[i] = *from
		}
		if r.head.CompareAndSwap(head, head+n) {
			return int(n)
		}
	}
}
