//go:build coirinterleave

package sched

import (
	"github.com/coir-go/coir/internal/coro"
	"github.com/coir-go/coir/internal/park"
)

// BareOwner is the owner of a task that no worker runs. Park commits the task's wait and blocks until it has ended.
type BareOwner interface {
	park.Owner
	Park()
}

// Bare prepares a task that no worker runs. A thread of an exploration runs the task, and owner wakes it. So an
// exploration includes the operations of fibers without the steps of a scheduler.
//
//go:norace
func (t *Task) Bare(owner BareOwner) {
	t.Parker.Init(owner)
	t.frame = &Frame{task: t}
}

// Embody makes the calling thread run the task.
//
//go:norace
func (t *Task) Embody() { t.frame.g = coro.G() }

//go:norace
func init() { parkBare = parksBare }

//go:norace
func parksBare(t *Task) bool {
	owner, ok := t.Owner().(BareOwner)
	if ok {
		owner.Park()
	}
	return ok
}
