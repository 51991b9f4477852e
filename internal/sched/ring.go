package sched

import (
	"unsafe"

	"github.com/coir-go/coir/internal/xatomic"
)

const ringSize = 256 // a power of two

// ring is a worker's queue of runnable tasks. The worker pushes at the tail, and pops at the head or takes the newest
// task back from the tail. Thieves take from the head.
//
//	head <= tail, tail-head <= ringSize; places head..tail-1 hold tasks
//
// Both ends are in one word, with a number that grows with every take, so that the word never has the same value twice:
//
//	 63               32 31        16 15         0
//	+-------------------+------------+------------+
//	|      number       |    tail    |    head    |
//	+-------------------+------------+------------+
//
// A taker copies the tasks that it wants and then changes the word. If the CAS fails, another taker came first, and the
// copies are discarded. A place is overwritten only after the word has passed it. So the places need no atomic access:
// in a race, a thief may read an old pointer, which is one word, and discards it.
type ring struct {
	word  xatomic.Uint64
	place [ringSize]*Task
}

const ringTaken = 1 << 32 // adds 1 to the number

//go:norace
func ends(w uint64) (head, tail uint16) { return uint16(w), uint16(w >> 16) }

//go:norace
func withHead(w uint64, head uint16) uint64 { return w&^0xffff | uint64(head) }

//go:norace
func withTail(w uint64, tail uint16) uint64 { return w&^(0xffff<<16) | uint64(tail)<<16 }

func (r *ring) len() int {
	head, tail := ends(r.word.Load())
	return int(tail - head)
}

// push appends t. It reports false if the ring is full. Only the worker calls it.
//
//go:norace
func (r *ring) push(t *Task) bool {
	w := r.word.Load()
	head, tail := ends(w)
	if tail-head == ringSize {
		return false
	}
	xatomic.Writes(unsafe.Pointer(&r.place[tail%ringSize]))
	r.place[tail%ringSize] = t
	for !r.word.CompareAndSwap(w, withTail(w, tail+1)) {
		w = r.word.Load() // a thief has moved head; only the worker moves tail
	}
	return true
}

// room returns how many tasks can be pushed. Thieves can only increase it. Only the worker calls it.
//
//go:norace
func (r *ring) room() int { return ringSize - r.len() }

// pushAll pushes tasks for which there is room. Only the worker calls it.
//
//go:norace
func (r *ring) pushAll(ts []*Task) {
	if len(ts) == 0 {
		return
	}
	w := r.word.Load()
	_, tail := ends(w)
	for i, t := range ts {
		place := &r.place[(tail+uint16(i))%ringSize]
		xatomic.Writes(unsafe.Pointer(place))
		*place = t
	}
	for !r.word.CompareAndSwap(w, withTail(w, tail+uint16(len(ts)))) {
		w = r.word.Load() // as in push
	}
}

// pop takes the oldest task, or returns nil. Only the worker calls it.
//
//go:norace
func (r *ring) pop() *Task {
	for {
		w := r.word.Load()
		head, tail := ends(w)
		if head == tail {
			return nil
		}
		xatomic.Reads(unsafe.Pointer(&r.place[head%ringSize]))
		t := r.place[head%ringSize]
		if r.word.CompareAndSwap(w, withHead(w, head+1)+ringTaken) {
			return t
		}
	}
}

// newest returns the newest task, or nil. The task stays in the ring, where thieves may take it. Only the worker calls
// it.
//
//go:norace
func (r *ring) newest() *Task {
	head, tail := ends(r.word.Load())
	if head == tail {
		return nil
	}
	return r.place[(tail-1)%ringSize]
}

// unpush takes the newest task back, if it is t. Only the worker calls it.
//
//go:norace
func (r *ring) unpush(t *Task) bool {
	for {
		w := r.word.Load()
		head, tail := ends(w)
		if head == tail || r.place[(tail-1)%ringSize] != t {
			return false
		}
		if r.word.CompareAndSwap(w, withTail(w, tail-1)+ringTaken) {
			return true
		}
	}
}

// grab moves the older half of the tasks, rounded up and at most len(into), to into, and returns how many it moved. Its
// callers are a thief (steal), a worker whose ring overflows, and drain.
//
// Spec: SC-10 (a queue gives each entry to one taker)
// Spec: SC-15 (a thief takes half)
//
//go:norace
func (r *ring) grab(into []*Task) int {
	for {
		w := r.word.Load()
		head, tail := ends(w)
		n := tail - head
		n = min((n+1)/2, uint16(len(into)))
		if n == 0 {
			return 0
		}
		for i := range n {
			from := &r.place[(head+i)%ringSize]
			xatomic.Reads(unsafe.Pointer(from))
			into[i] = *from
		}
		if r.word.CompareAndSwap(w, withHead(w, head+n)+ringTaken) {
			return int(n)
		}
	}
}
