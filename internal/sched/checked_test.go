//go:build coirinvariants

package sched

import "testing"

// TestCheckedBuildsRefuseWrongEntries: a task that is in a queue, or that still waits, cannot be put into another
// queue.
//
// Spec: PK-35 (only ended waits are in run queues)
// Spec: PK-46 (checked builds panic at an illegal transition)
func TestCheckedBuildsRefuseWrongEntries(t *testing.T) {
	s, _ := still(t, 1)
	refused := func(task *Task) (is bool) {
		defer func() { is = recover() != nil }()
		task.enqueue()
		return false
	}
	fresh := func() *Task {
		j := &job{ended: func() {}}
		j.task.Init(s)
		return &j.task
	}
	twice := fresh()
	if refused(twice) || !refused(twice) {
		t.Error("a task goes into a queue once, not twice")
	}
	waits := fresh()
	waits.Arm()
	if !refused(waits) {
		t.Error("a task that is about to park went into a queue")
	}
	parked := fresh()
	parked.Arm()
	parked.Commit()
	if !refused(parked) {
		t.Error("a parked task went into a queue")
	}
	ended := fresh()
	ticket := ended.Arm()
	ended.Commit()
	ended.Claim(ticket, 1)
	if refused(ended) {
		t.Error("a task whose wait has ended was kept out of a queue")
	}
}
