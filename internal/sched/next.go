package sched

import (
	"unsafe"

	"github.com/coir-go/coir/internal/xatomic"
)

// runNext is a worker's run-next place for one task. Only the worker puts a task there; any worker may take it.
//
// seq is odd while next holds a task. The task is not an atomic pointer because storing one is a call with a write
// barrier, and no other code runs as often. A taker reads the task, and then increments seq by a CAS. If the CAS
// succeeds, no worker has put or taken a task since the taker read seq, so the task that it read is the current one. If
// the CAS fails, the taker discards the task, which is one word.
type runNext struct {
	seq  xatomic.Uint64
	task *Task
}

// put stores t and returns the task that it replaces, or nil. Only the worker calls it.
//
//go:norace
func (n *runNext) put(t *Task) (old *Task) {
	old = n.take()
	xatomic.Writes(unsafe.Pointer(&n.task))
	n.task = t
	n.seq.Store(n.seq.Load() + 1) // seq is even, so no taker changes it
	return old
}

//go:norace
func (n *runNext) take() *Task {
	seq := n.seq.Load()
	if seq&1 == 0 {
		return nil
	}
	xatomic.Reads(unsafe.Pointer(&n.task))
	t := n.task
	if n.seq.CompareAndSwap(seq, seq+1) {
		return t
	}
	return nil // another taker was first; only the worker puts tasks here, so the place is empty now
}

func (n *runNext) empty() bool { return n.seq.Load()&1 == 0 }
