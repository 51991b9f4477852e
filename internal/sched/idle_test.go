package sched

// How workers are sent out to search, one at a time. The workers do not run: only their queues, their states and the
// idle list are used. Then the states that running workers may have.

import (
	"math"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/xatomic"
)

// resting is a scheduler whose first worker alone runs; the others are on the idle list. No worker has a goroutine.
func resting(t *testing.T, workers int) (*Scheduler, []*Worker) {
	s, ws := still(t, workers)
	for _, w := range ws[1:] {
		w.sema = xatomic.NewSema()
		s.discharge(w, idle)
		w.announce()
	}
	return s, ws
}

// sentOut counts the workers that were taken off the idle list.
func sentOut(ws []*Worker) (n int) {
	for _, w := range ws[1:] {
		if w.state.Load() == running {
			n++
		}
	}
	return n
}

// TestLastSearcherSendsTheNext: a searcher that finds work and leaves some sends out another worker before it runs its
// task. If no work is left, or if another searcher is out, it wakes no worker.
//
// Spec: SC-19 (the last searcher sends the next)
func TestLastSearcherSendsTheNext(t *testing.T) {
	for _, c := range []struct {
		name      string
		tasks     int
		searchers int32
		want      int
	}{
		{"the last, and work is left", 2, 1, 1},
		{"the last, and nothing is left", 1, 1, 0},
		{"another is out", 2, 2, 0},
	} {
		s, ws := resting(t, 4)
		thief, victim := ws[0], &Worker{s: s}
		s.mu.Lock()
		s.add(victim)
		s.active.Add(1)
		s.enlist(victim)
		s.mu.Unlock()
		thief.searching = true
		s.searchers.Store(c.searchers)
		for _, task := range tasks(c.tasks) {
			victim.putBack(task)
		}
		if thief.find() == nil {
			t.Fatalf("%s: it found nothing", c.name)
		}
		if got := sentOut(ws); got != c.want || thief.searching {
			t.Errorf("%s: %d workers were sent out, want %d; the one that found work still searches: %v",
				c.name, got, c.want, thief.searching)
		}
	}
}

// TestFreshWorkReachesIdleWorkers: a task that a worker queues for itself is offered to an idle worker once the queue
// is worth a wake; a task from outside always is. No worker collects fresh work while another sleeps.
//
// Spec: SC-27 (fresh work reaches idle workers)
// Spec: SC-44 (a sleeping worker is preferred to a new one)
func TestFreshWorkReachesIdleWorkers(t *testing.T) {
	s, ws := resting(t, 2)
	ws[0].slice.Store(wakeWorth / 2)
	for want, task := range tasks(2) {
		s.Go(task, ws[0])
		if got := sentOut(ws); got != want {
			t.Errorf("%d tasks queued here, each for half of what a wake costs: %d workers sent out, want %d", want+1, got, want)
		}
	}

	s, ws = resting(t, 2)
	s.Go(tasks(1)[0], nil)
	if got := sentOut(ws); got != 1 {
		t.Errorf("a task from outside: %d workers sent out, want 1", got)
	}

	s, ws = resting(t, 2)
	ws[0].state.Store(held)
	s.Go(tasks(1)[0], ws[0])
	if got := sentOut(ws); got != 1 || ws[0].hasWork() {
		t.Errorf("a task of a worker that is held: %d workers sent out, want 1; it keeps the task: %v", got, ws[0].hasWork())
	}
}

// TestWorkersComeOneAtATime: however many tasks and wakes there are, the next worker is sent out only when the one
// before has found work or given up, and never above the base number. Places that the monitor frees are filled in the
// same way, and it frees them once a tick, which is never shorter than tickMin.
//
// Spec: SC-18 (one wake of a searcher at a time)
// Spec: SC-35 (workers come one at a time)
// Spec: TK-12 (only a sleeping worker is woken)
func TestWorkersComeOneAtATime(t *testing.T) {
	const workers = 4
	s, ws := resting(t, workers)
	s.global.push(queued(100)...)
	for round := 1; round <= 2*workers; round++ {
		for range 50 {
			s.wake()
		}
		if got, want := sentOut(ws), min(round, workers-1); got != want {
			t.Fatalf("%d workers are out after %d rounds, want %d", got, round, want)
		}
		s.searchers.Store(0) // the searching worker has found something
	}

	s, ws = resting(t, workers)
	ws[0].cur = tasks(1)[0]
	for _, w := range ws {
		w.slice.Store(math.MaxInt32)
	}
	s.global.push(queued(100)...)
	for range 10 {
		s.inspect(time.Now(), tick)
		if s.monitor.every < tickMin {
			t.Fatalf("the next tick comes after %v, want at least %v", s.monitor.every, tickMin)
		}
	}
	if got := sentOut(ws); got != 1 || ws[0].state.Load() != held {
		t.Errorf("ten ticks with one worker stuck: %d workers sent out, want 1; the state of the stuck one is %d", got, ws[0].state.Load())
	}
}

// TestWorkerStates: a worker is running, idle, blocked or held. Except for short moments, active counts the running
// ones. Those on the idle list are idle, and at most twice the base number are running.
//
// Spec: SC-43 (a worker is running, idle, blocked or held)
func TestWorkerStates(t *testing.T) {
	const workers, most = 2, 12
	h := open(t, Config{Workers: workers, MaxWorkers: most})
	var stop atomic.Bool
	for i := range 8 {
		h.start(nil, func(j *job) {
			for !stop.Load() {
				switch i % 4 {
				case 0:
					j.block(runtime.Gosched)
				case 1:
					h.start(j.task.Worker(), func(j *job) { j.yield() })
				}
				j.yield()
			}
		})
	}
	// Blocking changes state and count without the lock, and the system may stop a worker between the two: a fault
	// counts if it stays.
	const patience = 5 * time.Second
	begin, good := time.Now(), time.Now()
	for i, fault := 0, ""; i < 10 || fault != "" || time.Since(begin) < 200*time.Millisecond; i++ {
		if fault = h.statesFault(); fault == "" {
			good = time.Now()
		} else if time.Since(good) > patience {
			t.Error(fault)
			break
		}
		runtime.Gosched()
	}
	stop.Store(true)
}

func (j *job) block(f func()) {
	race.Disable()
	j.task.Block(func() {
		race.Enable()
		f()
		race.Disable()
	})
	race.Enable()
}

// statesFault returns what is wrong with the states of the workers. It takes the lock that guards them.
//
//go:norace
func (h *house) statesFault() string {
	race.Disable()
	defer race.Enable()
	s := h.Scheduler
	s.mu.Lock()
	defer s.mu.Unlock()
	active := int32(0)
	for _, w := range s.workers {
		switch w.state.Load() {
		case running:
			active++
		case idle, blocked, held:
		default:
			return "a worker is in a state that has no name"
		}
	}
	listed := 0
	for w := s.idle; w != nil; w = w.idleNext {
		if listed++; w.state.Load() != idle || w.leaving {
			return "a worker on the idle list is not idle, or leaves"
		}
	}
	switch {
	case active != s.active.Load():
		return "the workers that run are not as many as are counted"
	case active > 2*s.target.Load():
		return "more than twice the base number of workers run"
	case listed != s.idlers:
		return "the idle list is not as long as is counted"
	}
	return ""
}

// TestStandInReplacesBlockedWorkers: jobs block natively without declaring it, and there are more of them than active
// workers. The job queued behind them still runs, even though the monitor never ticks.
//
// Spec: SC-51 (a worker stands by while work is queued)
func TestStandInReplacesBlockedWorkers(t *testing.T) {
	h := open(t, Config{Workers: 2, MaxWorkers: 20})
	h.monitor.stop()
	free := make(chan struct{})
	for range 10 {
		h.start(nil, func(*job) { <-free })
	}
	h.start(nil, func(*job) { close(free) })
	h.live.Wait()
	if n := h.Stats().Replaced; n == 0 {
		t.Error("no worker was replaced")
	}
}

// TestIdleWorkersThin: workers that are no longer needed leave, half of them at each check, down to the base number.
//
// Spec: SC-37 (a worker above the base number retires)
func TestIdleWorkersThin(t *testing.T) {
	const workers, extra = 2, 16
	s, _ := resting(t, workers)
	for range extra {
		s.mu.Lock()
		s.newWorker().announce()
		s.mu.Unlock()
	}
	now := time.Now()
	s.thin(now)
	for before := s.idlers; before > workers; before = s.idlers {
		now = now.Add(thinEvery)
		if !s.thin(now) && s.idlers > workers || s.idlers != before-(before-workers+1)/2 {
			t.Fatalf("%d idle workers after %d", s.idlers, before)
		}
	}
	if now = now.Add(thinEvery); s.thin(now) || s.idlers != workers {
		t.Errorf("%d idle workers at the end, want %d", s.idlers, workers)
	}
}
