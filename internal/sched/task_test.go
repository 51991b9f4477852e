package sched

// The tests check what a task does about its own wait, and where a woken task goes.

import (
	"sync/atomic"
	"testing"

	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/race"
)

// TestParkOfAWaitThatHasEndedDoesNotSwitch: a task that was woken before it parks continues at once, with the waker's
// reason. Control passes to no other task, although one is queued on its worker.
//
// Spec: PK-22 (a wait that has ended costs no switch)
func TestParkOfAWaitThatHasEndedDoesNotSwitch(t *testing.T) {
	h := open(t, Config{Workers: 1})
	h.start(nil, func(j *job) {
		var ran atomic.Bool
		h.start(j.task.Worker(), func(*job) { ran.Store(true) })
		if o := j.wake(j.task.Arm(), park.TimedOut); o != park.Won {
			t.Errorf("the wake of an armed wait: %v", o)
		}
		before := j.beat()
		race.Disable()
		left := j.task.BeginPark() != nil
		race.Enable()
		if left {
			t.Error("BeginPark wants to switch away from a wait that has ended") // and the test hangs
		}
		race.Disable()
		r := j.task.Park()
		race.Enable()
		if r != park.TimedOut {
			t.Errorf("Park returned reason %d, want %d", r, park.TimedOut)
		}
		if now := j.beat(); now != before {
			t.Errorf("control was passed on %d times", now-before)
		}
		if ran.Load() && h.Stats().Replaced == 0 { // else the monitor has given the queue away, on a busy machine
			t.Error("another task ran in between")
		}
	})
	h.live.Wait()
}

// beat returns how often the worker of the running task has passed control on.
//
//go:norace
func (j *job) beat() uint64 { return j.task.Worker().beat }

// TestWokenTaskGoesNearItsWaker: a task that a worker wakes is the next to run there, before those that were queued. If
// it is woken from outside, or by a worker that is not running, it goes to the global queue. This is a hint: another
// worker may take the task from there.
//
// Spec: SC-12 (a run-next slot can be stolen)
// Spec: SC-28 (a woken fiber goes near its waker)
// Spec: SC-29 (a fiber is diverted from a stuck worker)
func TestWokenTaskGoesNearItsWaker(t *testing.T) {
	woken := func(s *Scheduler) *Task {
		j := &job{ended: func() {}}
		j.task.Init(s)
		return &j.task
	}
	s, ws := still(t, 2)
	here, elsewhere := ws[0], ws[1]
	task := woken(s)
	here.putBack(tasks(1)[0])
	task.MakeReady(here)
	if got := here.pick(); got != task {
		t.Error("a task that a worker woke is not the next to run there")
	}

	task = woken(s)
	task.MakeReady(here)
	elsewhere.searching = true
	here.ring.grab(make([]*Task, ringSize)) // tasks that were queued before
	if got := elsewhere.steal(); got != task {
		t.Error("another worker could not take a task that was woken near its waker")
	}

	task = woken(s)
	task.MakeReady(nil)
	if got := s.global.pop(); got != task {
		t.Error("a task that was woken from outside is not in the global queue")
	}

	here.state.Store(held)
	task = woken(s)
	task.MakeReady(here)
	if got := s.global.pop(); got != task || here.hasWork() {
		t.Error("a task that a held worker woke is not in the global queue")
	}
}
