package sched

import (
	"sync/atomic"
	"time"

	"github.com/coir-go/coir/internal/race"
)

// counters are the counters of slow paths. Fast paths are counted by each worker: see tally and Worker.beat.
type counters struct {
	frames    atomic.Int64
	workers   atomic.Int64
	retired   atomic.Int64
	stolen    atomic.Int64
	overflows atomic.Int64
	blocks    atomic.Int64 // on workers that have left
	held      atomic.Int64
	atCap     atomic.Int64
	pressed   atomic.Int64
	stalls    atomic.Int64
	slept     atomic.Int64
	spawned   atomic.Int64 // from outside, and on workers that have left
	ended     atomic.Int64 // on workers that have left
	woken     atomic.Int64 // from outside, and on workers that have left
	late      atomic.Int64
	beats     atomic.Int64 // of workers that have left
}

// tally holds the counters of a worker. Other goroutines read it without synchronisation.
type tally struct{ spawned, ended, woken, blocks int64 }

// retire adds the counters of a worker that leaves.
//
//go:norace
func (c *counters) retire(w *Worker) {
	c.retired.Add(1)
	c.beats.Add(int64(w.beat))
	c.spawned.Add(w.tally.spawned)
	c.ended.Add(w.tally.ended)
	c.woken.Add(w.tally.woken)
	c.blocks.Add(w.tally.blocks)
}

// Stats is a snapshot of the scheduler. Each number is exact, but they are read one after the other.
type Stats struct {
	Workers    int           // all workers
	Idle       int           // workers that are asleep
	Blocked    int           // workers in a declared native call
	Held       int           // workers found in a native call that was not declared
	Runnable   int           // tasks in queues
	Frames     int64         // coroutines made so far
	FreeFrames int           // coroutines that are idle in the common pool
	Spawned    int64         // tasks started
	Ended      int64         // tasks that have ended
	Woken      int64         // waits of parked tasks that were ended
	Late       int64         // wakes that came after the wait had ended
	Switches   uint64        // transfers of control
	Stolen     int64         // tasks taken from another worker
	Overflows  int64         // times that a worker's ring was full
	Blocks     int64         // declared native calls
	Replaced   int64         // times that a worker was found held and replaced
	Started    int64         // workers started
	Retired    int64         // workers that have left
	AtCap      int64         // times that no worker could be started, because of MaxWorkers
	Pressed    int64         // monitor ticks that found work waiting
	Stalls     int64         // tasks found running past the stall threshold
	Slept      time.Duration // total time that idle workers have slept
}

// ticks counts the ticks of the monitors of all schedulers. Each tick runs on a goroutine of its own.
var ticks atomic.Int64

// Goroutines returns how many goroutines have been started so far to run the tasks of this scheduler, for the monitors
// of all schedulers, and for race.Alone. Goroutines that release coroutines are not counted.
//
//go:norace
func (s *Scheduler) Goroutines() int64 {
	return s.stats.frames.Load() + s.stats.workers.Load() + ticks.Load() + race.Goroutines()
}

// Stats takes a snapshot.
//
//go:norace
func (s *Scheduler) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &s.stats
	st := Stats{
		Runnable:  int(s.global.n.Load()),
		Frames:    c.frames.Load(),
		Stolen:    c.stolen.Load(),
		Overflows: c.overflows.Load(),
		Blocks:    c.blocks.Load(),
		Replaced:  c.held.Load(),
		Started:   c.workers.Load(),
		Retired:   c.retired.Load(),
		AtCap:     c.atCap.Load(),
		Pressed:   c.pressed.Load(),
		Stalls:    c.stalls.Load(),
		Slept:     time.Duration(c.slept.Load()),
		Switches:  uint64(c.beats.Load()),
		Spawned:   c.spawned.Load(),
		Ended:     c.ended.Load(),
		Woken:     c.woken.Load(),
		Late:      c.late.Load(),
	}
	for _, w := range s.workers {
		st.Workers++
		switch w.state.Load() {
		case idle:
			st.Idle++
		case blocked:
			st.Blocked++
		case held:
			st.Held++
		}
		st.Switches += w.beat
		st.Spawned += w.tally.spawned
		st.Ended += w.tally.ended
		st.Woken += w.tally.woken
		st.Blocks += w.tally.blocks
		st.Runnable += w.ring.len()
		if !w.next.empty() {
			st.Runnable++
		}
	}
	s.pool.mu.Lock()
	st.FreeFrames = s.pool.n
	s.pool.mu.Unlock()
	return st
}
