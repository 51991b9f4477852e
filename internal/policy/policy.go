// Package policy lets a simulator decide what a runtime of package coir otherwise leaves to chance. Only package sim
// uses it, so it is not public: a [Policy] depends on how coir works inside, and changes with it.
//
// A runtime with a policy has one worker. Its fibers announce each operation (an [Op]) before they perform it, and the
// policy decides whether the fiber continues now or another one runs first. In a runtime without a policy, each
// operation pays one check of a flag of the fiber.
//
// This package does not import package coir. A [Fiber] is a *coir.Fiber behind an interface, which costs no allocation
// in either direction, and package coir sets [Option].
//
// Rejected: a type parameter for *coir.Fiber. It would save the type assertions, but every type here, in coir and in
// sim would carry it.
package policy

import (
	"context"
	"time"
)

// Option returns the coir.RuntimeOption that gives a runtime the policy p. Package coir sets it in its initialisation.
var Option func(p Policy) any

// Fiber is a *coir.Fiber.
type Fiber interface {
	ID() uint64
}

// Policy is implemented by a simulator and used by a runtime. The fibers call it, one at a time. Other goroutines also
// call Wake, Len and Stray, at any time.
//
// In race builds its methods run with their synchronisation hidden from the race detector (internal/race), except for
// Attach, Stray and Fault.
type Policy interface {
	// Attach gives the policy its runtime. It is called once, before any other method.
	Attach(rt Runtime)
	Order
	Record
	Device
}

// Order decides which fiber runs, before and after each operation, and which of several ready cases a select chooses.
type Order interface {
	// Ready tells the policy that f can run.
	Ready(f Fiber)
	// Wake is Ready for a call by the clock or by a goroutine.
	Wake(f Fiber)
	// Next removes one of the fibers that can run and returns it, so that it runs. It returns nil if there is none.
	Next() Fiber
	// Len returns how many fibers can run.
	Len() int
	// Step tells the policy that f, which runs, is about to perform op. If Step returns false, f becomes Ready and the
	// runtime calls Next.
	Step(f Fiber, op Op) bool
	// Stepped tells the policy that f, which runs, has completed the announced operation without waiting. If Stepped
	// returns false, f becomes Ready and the runtime calls Next. It is not called after operations that change nothing
	// for other fibers: Start, Sleep, Yield, Wait, Join, End, and a Point with nothing to do.
	Stepped(f Fiber) bool
	// Choose returns a number below n that decides which of n possible results the operation of the running fiber has.
	Choose(n int) int
}

// Record records what operations have done. It decides nothing.
type Record interface {
	// Waits tells the policy that f, which is new, begins with a wait in op. The fiber that runs has announced it, as a
	// SendAsync or RecvAsync of its own. Ready follows when the wait has ended, perhaps immediately.
	Waits(f Fiber, op Op)
	// Ended tells the policy the outcome of the operation that f, which runs, announced last. It is called before
	// Stepped. If f has waited, it is called only for a select and for failures. If it is called twice, the first call
	// counts. If it is not called, the operation succeeded, or changed nothing for other fibers. For a Select, which is
	// the index in Op.Cases of the chosen case, or -1 if unknown; for a TryRecv it is the number of values received, or
	// -1 for one.
	Ended(f Fiber, how Outcome, which int)
	// Holds tells the policy that f, which runs, has taken n of an object, or given back -n if n is negative. It is
	// called after the operation, if that succeeded.
	Holds(f Fiber, object uint64, n int)
	// Made tells the policy that the running fiber has made a channel with that number, which holds up to room values.
	Made(object uint64, room int)
	// Stray tells the policy that a goroutine, which it does not control, performs op on an object that a fiber of the
	// runtime made.
	Stray(op Op)
}

// Device replaces what is outside the process: see coir.Simulation.
type Device interface {
	// Draw returns a number below n for the program.
	Draw(n int) int
	// Fault decides whether a fault happens now.
	Fault(name string) bool
	// State returns the value that SetState stored for key in this schedule, and whether there is one.
	State(key any) (v any, ok bool)
	// SetState stores v for key until the schedule ends.
	SetState(key, v any)
}

// Runtime is a runtime as its policy sees it.
type Runtime interface {
	// Interrupt ends the wait of f, a fiber of the runtime, as if its context were cancelled, even if that context is a
	// coir.Shield or context.Background. It reports whether there was such a wait. The policy may call it in Next. A
	// wait for the children of a nursery, or for a place in one, cannot be interrupted.
	Interrupt(f Fiber) bool
	// TimedOut reports whether the last wait of f, which can run, ended because its time had passed.
	TimedOut(f Fiber) bool
	// Woken returns how the last wait of f, which can run, ended. A wait for a time ends with TimedOut.
	Woken(f Fiber) Outcome
	// Failed returns the error with which f has ended, or nil, and whether that is a *coir.PanicError because f panicked.
	Failed(f Fiber) (err error, panics bool)
	// Outside is for a policy that finds no fiber able to run. It looks for a context of package context that is
	// cancelled within patience, and returns the stack of the call that depends on that context, or nil.
	Outside(patience time.Duration) (stack []uintptr)
	// Goroutines returns the number of goroutines that the runtime has started so far, plus those that all runtimes
	// have started for internal use.
	Goroutines() int64
	// Rewind sets the runtime's clock, which is virtual, to 0. This ends no wait for a time.
	Rewind()
	// Announce calls do as the operation op of the calling fiber, to which ctx belongs. The policy may run other fibers
	// before and after it.
	Announce(ctx context.Context, op Op, do func())
}

// Op is an operation that is about to happen.
type Op struct {
	Kind    Kind
	Foreign bool // of a Go: the caller is neither in the nursery nor the fiber that opened it
	Limited bool // of a Go: the nursery has a limit

	Background bool // of a Use: it waits for a time that does not keep the program running

	Object uint64        // the number of the channel, fiber or nursery
	Name   string        // its name, if it has one
	For    time.Duration // of a Sleep: the duration
	In     uint64        // of a Start and an End: the number of the fiber's nursery

	// Of a Select: the cases. They are Send and Recv for channels, Wait for the end of a fiber, Leave for the side of a
	// pipe, Sleep for a time. Nil means that the cases are not listed, as for a coir.Selector with very many. The slice
	// is reused when Step has returned.
	Cases []Op

	Verb *Verb // of a Use; of a Send or Recv, other words for its wait, or nil
	Undo bool  // of a Use: the operation named by Verb.Ends
	Try  bool  // of a Use: it takes what is available, or fails, without waiting
	// Of a Use: after a wait, the operation uses the object again, or may end the waits of other fibers there.
	Again bool

	Take int // of a Use: how much of the object it takes or gives back; 0 if there is nothing to take

	// Of a Deadline: the stack of the call that uses the context.
	Stack []uintptr
}

// Outcome is how an operation ended.
type Outcome uint8

// The outcomes.
const (
	Unknown    Outcome = iota // it has not ended, or its end was not recorded
	Done                      // it succeeded
	WouldBlock                // a Try operation that would have blocked
	Closed                    // the channel is closed
	TimedOut                  // its time limit has passed, or that of its context
	Cancelled                 // its context was cancelled
	Dropped                   // of a send: done, but the value may have been dropped
	Displaced                 // of a send: done, and the oldest value was dropped
	Again                     // it has an effect only the first time, and this was not the first
	Yes                       // the answer to a question is yes
	No
)

var outcomes = [...]string{
	"", "", "would block", "closed", "timed out", "cancelled", "dropped", "dropped the oldest", "no effect", "yes", "no",
}

// String returns the outcome in the words of a report. It is empty for the usual outcome.
func (o Outcome) String() string { return outcomes[o] }

// Verb describes a Use, in the words of a report.
type Verb struct {
	Name  string // "lock": the operation
	Waits string // "to lock": what a fiber waits for, before the name of the object. Empty if the operation never waits
	Ends  string // "unlock": the operation that ends the wait; it gives back what Name takes
	Of    string // "mutex": what the object is

	Alone  bool // see coir.Verb
	Shared bool // see coir.Verb
}

// Word returns a short name of the operation.
func (o *Op) Word() string {
	switch {
	case o.Kind == Use && o.Undo:
		return o.Verb.Ends
	case o.Kind == Use && o.Try:
		return "try " + o.Verb.Name
	case o.Kind == Use:
		return o.Verb.Name
	}
	return o.Kind.String()
}

// Kind is the kind of an operation.
type Kind uint8

// The kinds of operations. A policy may define its own kinds, from 255 downwards.
const (
	Start Kind = iota // a fiber begins
	Send
	Recv
	TrySend
	TryRecv
	Close
	Abort
	Select
	Sleep
	Yield
	Wait // for a fiber
	Go
	Cancel
	Join // of a nursery's children
	End  // of a fiber
	TrySelect
	Leave    // an endpoint of a pipe is closed. If it is the last one of its side, Close or Abort follows
	Clone    // an endpoint of a pipe is added
	Register // a case is added to a selector, or removed
	Deadline // the use of a context with a deadline of package context, which passes in real time. Passed only to Stray
	Point    // no effect: see coir.Point
	Use      // uses an object that is neither a channel nor a fiber: see Verb

	SendAsync // begins the wait of another fiber: see Policy.Waits
	RecvAsync

	RunElsewhere // Run of another runtime
)

var names = [...]string{
	"start", "send", "recv", "try send", "try recv", "close", "abort", "select", "sleep", "yield", "wait", "go",
	"cancel", "join", "end", "try select", "leave", "clone", "register", "deadline", "point",
	"use", "send async", "recv async", "run elsewhere",
}

func (k Kind) String() string {
	if int(k) >= len(names) {
		return "an operation of its own" // of the policy
	}
	return names[k]
}
