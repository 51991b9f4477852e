package coir

// What packages runtime and testing of the overlay tell each other about a schedule, and what testing tells the
// command. Each is defined only here, so that the three cannot disagree.

// Config says how to run a schedule. The strategy, which makes the decisions, comes beside it.
type Config struct {
	Seed      uint64 // of what the program draws
	Racing    uint64 // percent of the points at which the clock moves although goroutines can run
	MostBusy  uint64 // steps without a moment at which all wait, after which the schedule is given up
	MostSteps uint64 // steps, after which it is given up
	MostTicks uint64 // moves of the clock without progress of the test, after which there will be none
	TickSpan  int64  // how far the clock moves meanwhile, unless the moves are ten times as many
	Trace     bool   // record where each step is
	Atomics   bool   // atomic operations are points
	Collect   bool   // collect garbage when the test has ended: a finalizer may stop what the test left behind
	Sweeps    bool   // collect garbage before a deadlock is one: a finalizer may close a socket that is waited for
	CountNews bool   // count what no earlier schedule did; see News
	InMemory  bool   // sockets are in memory, if they can be
	Faults    uint32 // those that may happen, as bits in the order of the variable Faults
}

// Outcome is what package runtime knows of a schedule that has ended, or of the running one.
type Outcome struct {
	Steps, Hash  uint64
	Decisions    int
	Actors       int
	TooBusy      bool // it was given up after MostBusy steps without a moment at which all wait
	TooLong      bool // it was given up after MostSteps steps
	Simulates    bool // it was given up because the test explores by itself: see CoirSimulates in package runtime
	OnlyTimers   bool // only timers made progress
	UsesTime     bool // a goroutine has made a step while a timer was set
	Misfit       bool // a given decision had fewer ways
	Overflow     bool // a table was too small
	LostDecision bool // a decision other than 0 is not in the table
	Cases        int
	Channels     int
	News         uint32 // how much it did that no earlier schedule had done; see coirNews in package runtime
	Now          int64  // the last moment at which something happened
	Outside      uint32 // wakes by a goroutine outside, by the network, or after a long system call
	Foreign      uint32 // those by a goroutine outside
	Signals      bool   // it waits for signals
	UsesKernel   bool   // it has read from a socket or a pipe of the kernel, or started a process
	NeedsKernel  string // why it was given up: the test must run on the kernel's network; empty: it was not
	PanicG       uint32 // the goroutine whose panic would have ended the process; 0: none
	Panic        string
}

// How much of a schedule package runtime keeps, for package testing to read.
const (
	KeptSteps    = 1 << 16 // the last ones
	KeptCases    = 1 << 16 // of selects: the last ones
	KeptChannels = 1 << 13 // the last ones
	KeptActors   = 1 << 17 // the first ones
)

// Sweeps is the number of garbage collections before a schedule counts as a deadlock. It is more than one because an
// object that a finalizer frees may have a finalizer itself.
const Sweeps = 3

// KernelWait is a wait for a descriptor.
type KernelWait struct {
	FD    int32
	Write bool
}

// A goroutine may be quiet. In code of the harness that it calls, such as t.Run, it has no points (QuietNoPoints). The
// harness itself, which starts the test and waits for it, gets the turn when no other goroutine can run (QuietLast).
const (
	QuietNot = iota
	QuietLast
	QuietNoPoints
)

// What a schedule waits for outside. The record of a schedule that is not controlled has the number.
const (
	ForNothing   = iota
	ForCall      // a system call
	ForOutside   // something outside, such as the network
	ForComputing // a goroutine that computes
	ForStep      // the end of a step that takes more than half a minute
	ForSignal
	ForGoroutine // a goroutine outside of the schedule
	ForKernelNet // nothing: the schedule must end, because it needs the kernel's network
)

// A Kind says how a schedule ended.
type Kind string

// The kinds. Those from KindFail on are failures of the test.
const (
	KindPass         Kind = ""
	KindSimulates    Kind = "simulates"    // the test explores by itself
	KindKernel       Kind = "kernel"       // it needs the kernel's network
	KindLong         Kind = "long"         // it was given up after too many steps
	KindUncontrolled Kind = "uncontrolled" // it waits for something outside
	KindFail         Kind = "fail"         // the test has called Fail
	KindPanic        Kind = "panic"
	KindDeadlock     Kind = "deadlock"
	KindLivelock     Kind = "livelock" // it is endless, and the plain schedule is not
	KindLeak         Kind = "leak"     // it leaves goroutines behind
	KindRace         Kind = "race"     // the race detector has reported a data race
)

// A Verdict is the result of exploring a test, as the summary of its record has it.
type Verdict string

// The verdicts. Only the command uses the last three.
const (
	VerdictPass         Verdict = "pass"
	VerdictFail         Verdict = "fail"
	VerdictSlow         Verdict = "slow"  // it fails on a slow machine only
	VerdictNever        Verdict = "never" // what it says must happen sometimes never did
	VerdictSkip         Verdict = "skip"
	VerdictSimulates    Verdict = "simulates"    // it explores by itself
	VerdictKernel       Verdict = "kernel"       // it must run on the kernel's network
	VerdictLong         Verdict = "long"         // a schedule has too many steps
	VerdictUncontrolled Verdict = "uncontrolled" // a schedule waits for something outside
	VerdictStateful     Verdict = "stateful"     // a schedule notices earlier ones: each needs a process of its own
	VerdictAgain        Verdict = "again"        // a failure must be run again in another process
	VerdictMore         Verdict = "more"         // the remaining schedules must be run in another process
	VerdictEnd          Verdict = "end"          // the strategy has no such schedule
	VerdictChanged      Verdict = "changed"      // it does not do what it did when the token was made
	VerdictError        Verdict = "error"        // coir could not run the test
	VerdictDied         Verdict = "died"         // the process ended without a record
	VerdictStrict       Verdict = "strict"       // it was not controlled, and -strict is given
	VerdictHealed       Verdict = "healed"       // the schedule of -replay does not fail
)
