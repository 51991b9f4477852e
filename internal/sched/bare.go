//go:build coirinterleave

package sched

import "github.com/coir-go/coir/internal/park"

// Bare readies a task that no worker runs: the thread that calls is the task, and owner is what wakes it. An exploration so has the
// operations of fibers without the steps of a scheduler.
//
//go:norace
func (t *Task) Bare(owner park.Owner) {
	t.Parker.Init(owner)
	t.frame = &Frame{task: t}
}
