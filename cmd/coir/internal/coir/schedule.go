package coir

// The types and constants that packages runtime and testing of the overlay use to exchange data about a schedule, and
// those in the records that package testing writes for the command. They are defined only here, so that the three
// cannot disagree.

// Config says how to run a schedule. The strategy, which makes the decisions, is passed separately.
type Config struct {
	Seed      uint64 // the seed of the program's random numbers
	Racing    uint64 // the percentage of points at which the clock moves although goroutines can run; see RacingBounded
	MostBusy  uint64 // the schedule is given up after so many steps without a moment at which all goroutines wait
	MostSteps uint64 // the schedule is given up after so many steps
	MostTicks uint64 // after so many moves of the clock without progress there will be none: coirTick
	TickSpan  int64  // the clock must also have moved this far, unless it has moved ten times as often
	Trace     bool   // record the stack of each step
	Atomics   bool   // atomic operations are points
	Collect   bool   // collect garbage when the test has ended: a finalizer may stop goroutines that it left behind
	Sweeps    bool   // collect garbage before reporting a deadlock: a finalizer may close a socket that is waited for
	CountNews bool   // count in Outcome.News what no earlier schedule did
	InMemory  bool   // sockets are in memory where that is possible
	Faults    uint32 // the faults that may happen, as bits in the order of the variable Faults
	Muted     uint32 // the faults that happen but have no effect, as bits in the order in which they happen
}

// RacingBounded is added to Config.Racing if the clock moves early by at most MostSlow nanoseconds in all, from one
// moment at which all goroutines wait to the next. A token contains the sum of both.
const RacingBounded = 1 << 7

// MostSlow is the longest delay, in nanoseconds, that may only mean that a test relies on a fast machine. A busy
// machine stops a process for seconds. Longer limits are meant for other things, such as lost packets (net/http dials
// for at most 30 seconds, and waits 10 for a TLS handshake) or a day after which an entry of a cache expires. In memory
// no machine is so slow that they end early.
const MostSlow = 9e9

// Outcome describes a schedule that has ended, or the running one. Package runtime fills it in.
type Outcome struct {
	Steps, Hash  uint64
	Decisions    int
	Actors       int
	TooBusy      bool // it was given up after MostBusy steps without a moment at which all goroutines waited
	TooLong      bool // it was given up after MostSteps steps
	Simulates    bool // it was given up because the test itself explores schedules; see runtime's CoirSimulates
	OnlyTimers   bool // only timers made progress
	UsesTime     bool // a goroutine made a step while a timer was set
	Misfit       bool // a decision of the strategy was larger than the number of ways
	Overflow     bool // a table was too small
	LostDecision bool // a decision other than 0 is not in the table
	Cases        int
	Channels     int
	News         uint32 // how many things it did that no earlier schedule had done; see runtime's coirNews
	Now          int64  // the last moment at which something happened
	Early        int64  // the longest time by which the clock moved while goroutines could run, until all waited
	Outside      uint32 // wakes by a goroutine outside, by the network, or after a long system call
	Foreign      uint32 // the part of Outside that goroutines outside caused
	Signals      bool   // the program waits for signals
	UsesKernel   bool   // it read from a socket or a pipe of the kernel, or started a process
	NeedsKernel  string // if not empty, it was given up for this reason: the test must run on the kernel's network
	PanicG       uint32 // the goroutine whose panic would have ended the process; 0: none
	Panic        string

	Recovered     uint32 // how many panics of handlers servers of package net/http recovered
	RecoveredG    uint32 // the goroutine of the first of these
	Request       string // what that goroutine handled: GET /pay
	RecoveredText string // the text of the panic
}

// The numbers of entries that package runtime keeps of a schedule for package testing.
const (
	KeptSteps    = 1 << 16 // the newest
	KeptCases    = 1 << 16 // cases of selects, the newest
	KeptChannels = 1 << 13 // the newest
	KeptActors   = 1 << 17 // the oldest
)

// Decision is a decision of the strategy.
type Decision struct {
	Ways, Way uint16 // their number, and the chosen one
	Kind      uint8  // Keep, ...
	Step      uint32 // the number of steps before it
}

// Step is a step of a schedule: the operation that a goroutine was about to do.
type Step struct {
	G, Obj uint32 // the numbers of the goroutine and of the object
	Op     uint8
	Second bool   // the operation was on the accepted end of a connection, or the end of a pipe that reads
	Chose  int16  // what a select took: 1 plus the index of the case, or -1 for the default; 0: none or unknown
	Done   uint32 // its position in the order in which operations began, from 1; 0: not begun
	Bytes  int32  // the number of bytes that a read or a write moved
	On     uint32 // the goroutine on whose behalf the bytes moved, or 0
	At     int64  // on the virtual clock, in nanoseconds
}

// SelectCase is a case of a select.
type SelectCase struct {
	Step, Obj uint32 // the numbers of the step and of the channel
	Index     uint16
	Send      bool
}

// Actor is a goroutine of a schedule.
type Actor struct {
	Parent uint32
	Go     uintptr // the program counter of the go statement
	Op     uint8   // the operation of its last point
	State  uint8   // Ready, ...
	Wait   uint8   // why it last waited: WaitSend, ...
	Reason string  // the same in the words of package runtime
	Obj    uint32
	Step   uint32
	Since  int64 // on the virtual clock, in nanoseconds
}

// Fiber is a fiber of module coir.
type Fiber struct {
	Name  string
	ID    uint64
	Waits func() (text string, holders []uint64) // what it waits for, and the fibers that hold it
}

// SweepCount is the number of garbage collections before a deadlock is reported. It is more than one because an object
// that a finalizer frees may have a finalizer itself.
const SweepCount = 3

// WatchTick is the time between two checks of a schedule by the watcher of package testing, in nanoseconds.
const WatchTick = 20_000_000

// KernelWait is a wait for a descriptor.
type KernelWait struct {
	FD    int32
	Write bool
}

// A goroutine may be quiet. While it runs code of the test harness, such as t.Run, it has no points (QuietNoPoints).
// The goroutine of the harness itself, which starts the test and waits for it, gets the turn only when no other
// goroutine can run (QuietLast).
const (
	QuietNot = iota
	QuietLast
	QuietNoPoints
)

// Reasons why no goroutine of a schedule makes a step. The record of a schedule that is not controlled contains the
// number.
const (
	ForNothing   = iota
	ForCall      // a system call
	ForOutside   // something outside, such as the network
	ForComputing // a goroutine that computes
	ForStep      // the end of a step that takes more than half a minute
	ForSignal
	ForGoroutine // a goroutine outside of the schedule
	ForKernelNet // the schedule must end, because it needs the kernel's network
)

// A Kind says how a schedule ended.
type Kind string

// The kinds. KindFail and those after it are failures of the test.
const (
	KindPass         Kind = ""
	KindSimulates    Kind = "simulates"    // the test itself explores schedules
	KindKernel       Kind = "kernel"       // the test needs the kernel's network
	KindLong         Kind = "long"         // the schedule was given up after too many steps
	KindUncontrolled Kind = "uncontrolled" // the schedule waits for something outside
	KindFail         Kind = "fail"         // the test called Fail
	KindPanic        Kind = "panic"
	KindDeadlock     Kind = "deadlock"
	KindLivelock     Kind = "livelock" // the schedule does not end, although the plain schedule does
	KindLeak         Kind = "leak"     // the test left goroutines behind
	KindRace         Kind = "race"     // the race detector reported a data race

	// A handler panicked, net/http recovered that, and the test passes. It counts as a failure only in a replay.
	KindRecovered Kind = "recovered"
)

// A Verdict is the result of exploring a test. The summary of the test's record contains it.
type Verdict string

// The verdicts. Only the command uses the last three.
const (
	VerdictPass         Verdict = "pass"
	VerdictFail         Verdict = "fail"
	VerdictSlow         Verdict = "slow"  // it fails only on a slow machine
	VerdictNever        Verdict = "never" // a condition that the test says must happen sometimes never happened
	VerdictSkip         Verdict = "skip"
	VerdictSimulates    Verdict = "simulates"    // the test itself explores schedules
	VerdictKernel       Verdict = "kernel"       // the test must run on the kernel's network
	VerdictLong         Verdict = "long"         // a schedule has too many steps
	VerdictUncontrolled Verdict = "uncontrolled" // a schedule waits for something outside
	VerdictStateful     Verdict = "stateful"     // earlier schedules change later ones, so each needs its own process
	VerdictAgain        Verdict = "again"        // a failure must be run again in another process
	VerdictMore         Verdict = "more"         // the remaining schedules must be run in another process
	VerdictEnd          Verdict = "end"          // the strategy has no such schedule
	VerdictChanged      Verdict = "changed"      // the test does not behave as it did when the token was made
	VerdictError        Verdict = "error"        // coir could not run the test
	VerdictDied         Verdict = "died"         // the process ended without a record
	VerdictStrict       Verdict = "strict"       // the test was not controlled, and -strict is given
	VerdictHealed       Verdict = "healed"       // the schedule of -replay does not fail
)
