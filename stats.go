package coir

import "time"

// Stats is a snapshot of a [Runtime]. Each number is right by itself, at its own moment; no two need belong together.
// Those that only grow count since the runtime was made.
type Stats struct {
	// The workers, now.
	Workers int // all there are: the sum of the next four
	Active  int // run fibers or look for some; at most twice [Workers]
	Idle    int // sleep
	Blocked int // are in a call of [Blocking]
	Held    int // were found held up in native code without Blocking

	Runnable int // fibers in queues: the pressure

	// Fibers.
	Spawned int64 // started
	Ended   int64 // of them have ended
	Woken   int64 // waits of fibers that were asleep, ended by whoever
	Late    int64 // wakes, cancels and timeouts that came when the wait had ended already

	// Work.
	Switches  uint64 // passings of control between fibers
	Stolen    int64  // fibers that a worker took from another
	Overflows int64  // times that a worker's queue was full and half of it went to the common one

	// Coroutines, on which fibers run one after the other.
	Coroutines     int64 // made
	IdleCoroutines int   // now in the common pool

	// Scaling.
	Blocks   int64         // calls of Blocking
	Replaced int64         // workers found held up, whose place was given to another
	Started  int64         // workers started
	Retired  int64         // workers that have left
	AtCap    int64         // times that [MaxWorkers] kept another from being started
	Pressed  int64         // times that the monitor found fibers waiting for a worker
	Stalls   int64         // fibers found running past the stall threshold
	Slept    time.Duration // by idle workers, in sum
}

// Stats takes a snapshot.
func (rt *Runtime) Stats() Stats {
	// Spec: OB-07 (a runtime counts waits and wakes)
	// Spec: OB-09 (counters are diagnostic)
	s := rt.s.Stats()
	return Stats{
		Workers: s.Workers, Active: s.Workers - s.Idle - s.Blocked - s.Held, Idle: s.Idle, Blocked: s.Blocked, Held: s.Held,
		Runnable: s.Runnable,
		Spawned:  s.Spawned, Ended: s.Ended, Woken: s.Woken, Late: s.Late,
		Switches:  s.Switches,
		Stolen:    s.Stolen,
		Overflows: s.Overflows, Coroutines: s.Frames, IdleCoroutines: s.FreeFrames,
		Blocks: s.Blocks, Replaced: s.Replaced, Started: s.Started, Retired: s.Retired, AtCap: s.AtCap,
		Pressed: s.Pressed, Stalls: s.Stalls, Slept: s.Slept,
	}
}
