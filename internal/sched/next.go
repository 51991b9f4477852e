package sched

import (
	"unsafe"

	"github.com/coir-go/coir/internal/xatomic"
)

// next is a worker's run-next place: one task, put there by the worker, taken by anybody.
//
// seq is odd while it holds a task. It is not an atomic pointer because those are calls with a write barrier in them,
// and this is the hottest place there is. Whoever takes reads the task and then moves seq on; if the CAS succeeds nobody
// has put or taken in between, and the task was that one. If it fails, what was read is one word and is thrown away.
type next struct {
	seq  xatomic.Uint64
	task *Task
}

// put places t and returns the task that was there. Only the worker calls it.
//
//go:norace
func (n *next) put(t *Task) (old *Task) {
	old = n.take()
	xatomic.Writes(unsafe.Pointer(&n.task))
	n.task = t
	n.seq.Store(n.seq.Load() + 1) // from even to odd: nobody else moves it now
	return old
}

//go:norace
func (n *next) take() *Task {
	seq := n.seq.Load()
	if seq&1 == 0 {
		return nil
	}
	xatomic.Reads(unsafe.Pointer(&n.task))
	t := n.task
	if n.seq.CompareAndSwap(seq, seq+1) {
		return t
	}
	return nil // a thief was faster; only the worker puts, so there is nothing now
}

func (n *next) empty() bool { return n.seq.Load()&1 == 0 }
