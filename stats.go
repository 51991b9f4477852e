package coir

import "time"

// Stats is a snapshot of a [Runtime]'s counters. Each number is exact, but the numbers are not all read at the same
// moment. Each uint64 counts events: it only grows, and starts at 0 when the runtime is created. Each int is the number
// of something now.
type Stats struct {
	// The workers at the moment.
	Workers int // all workers: the sum of the next four
	Active  int // running a fiber or looking for one; at most twice [WithWorkers]
	Idle    int // sleeping
	Blocked int // in a call of [Blocking]
	Held    int // found blocked in native code without Blocking

	Runnable int // fibers in run queues

	// Fibers.
	Spawned     uint64 // fibers started
	Ended       uint64 // fibers ended
	Woken       uint64 // waits ended after the fiber had parked
	OnGoroutine int    // fibers that run on their own goroutines now
	Late        uint64 // wakes, cancellations and timeouts that came after the wait had ended

	// Work.
	Switches  uint64 // switches between fibers
	Stolen    uint64 // fibers that a worker took from another worker
	Overflows uint64 // times that a worker's queue was full and half of it was moved to the shared queue

	// Coroutines. A coroutine runs fibers one after the other.
	Coroutines     uint64 // coroutines made
	IdleCoroutines int    // idle coroutines in the shared pool now

	// Scaling.
	Blocks   uint64        // calls of Blocking
	Replaced uint64        // workers found blocked in native code and replaced
	Started  uint64        // workers started
	Retired  uint64        // workers ended
	AtCap    uint64        // times that [WithMaxWorkers] prevented a start
	Pressed  uint64        // times that the monitor found fibers waiting for a worker
	Stalls   uint64        // fibers found running past the stall threshold
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
		Spawned:  uint64(s.Spawned + begun), Ended: uint64(s.Ended + ended), OnGoroutine: int(begun - ended),
		Woken: uint64(s.Woken), Late: uint64(s.Late),
		Switches: s.Switches, Stolen: uint64(s.Stolen), Overflows: uint64(s.Overflows),
		Coroutines: uint64(s.Frames), IdleCoroutines: s.FreeFrames,
		Blocks: uint64(s.Blocks), Replaced: uint64(s.Replaced), Started: uint64(s.Started), Retired: uint64(s.Retired),
		AtCap: uint64(s.AtCap), Pressed: uint64(s.Pressed), Stalls: uint64(s.Stalls), Slept: s.Slept,
	}
}
