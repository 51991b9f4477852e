package coir

import "time"

// Stats is a snapshot of a [Runtime]'s counters. Each number is exact, but the numbers are not all read at the same
// moment. Counters that only grow start at 0 when the runtime is created.
type Stats struct {
	// The workers at the moment.
	Workers int // all workers: the sum of the next four
	Active  int // running a fiber or looking for one; at most twice [WithWorkers]
	Idle    int // sleeping
	Blocked int // in a call of [Blocking]
	Held    int // found blocked in native code without Blocking

	Runnable int // fibers in run queues

	// Fibers.
	Spawned     int64 // fibers started
	Ended       int64 // fibers ended
	Woken       int64 // waits ended after the fiber had parked
	OnGoroutine int64 // fibers that run on their own goroutines now
	Late        int64 // wakes, cancellations and timeouts that came after the wait had ended

	// Work.
	Switches  uint64 // switches between fibers
	Stolen    int64  // fibers that a worker took from another worker
	Overflows int64  // times that a worker's queue was full and half of it was moved to the shared queue

	// Coroutines. A coroutine runs fibers one after the other.
	Coroutines     int64 // coroutines made
	IdleCoroutines int   // idle coroutines in the shared pool now

	// Scaling.
	Blocks   int64         // calls of Blocking
	Replaced int64         // workers found blocked in native code and replaced
	Started  int64         // workers started
	Retired  int64         // workers ended
	AtCap    int64         // times that [WithMaxWorkers] prevented a start
	Pressed  int64         // times that the monitor found fibers waiting for a worker
	Stalls   int64         // fibers found running past the stall threshold
	Slept    time.Duration // total time that idle workers slept
}

// Stats returns a snapshot of the runtime's counters.
func (rt *Runtime) Stats() Stats {
	// Spec: OB-07 (a runtime counts wakes and sleep)
	// Spec: OB-09 (counters are diagnostic)
	s := rt.s.Stats()
	ended := rt.native.ended.Load() // read first, so that no more have ended than have started
	begun := rt.native.begun.Load()
	return Stats{
		Workers: s.Workers, Active: s.Workers - s.Idle - s.Blocked - s.Held, Idle: s.Idle, Blocked: s.Blocked, Held: s.Held,
		Runnable: s.Runnable,
		Spawned:  s.Spawned + begun, Ended: s.Ended + ended, OnGoroutine: begun - ended, Woken: s.Woken, Late: s.Late,
		Switches:  s.Switches,
		Stolen:    s.Stolen,
		Overflows: s.Overflows, Coroutines: s.Frames, IdleCoroutines: s.FreeFrames,
		Blocks: s.Blocks, Replaced: s.Replaced, Started: s.Started, Retired: s.Retired, AtCap: s.AtCap,
		Pressed: s.Pressed, Stalls: s.Stalls, Slept: s.Slept,
	}
}
