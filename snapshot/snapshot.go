// Package snapshot holds what a running program of package coir is doing: its fibers, what each of them waits for, and
// the objects that they wait for. Other goroutines are in it while they wait for such an object.
// [github.com/coir-go/coir.Runtime.Snapshot] returns a [Snapshot].
//
// A Snapshot is a plain value: it has no pointer into the program, so it can be kept, compared and encoded. It does not
// show values that the program has sent or stored.
//
// # Consistency
//
// The program continues to run while a snapshot is taken. Each fiber is read at one moment, and so is each object, but
// the moments differ: objects are read after all fibers. A fiber that begins or ends meanwhile may be missing. To find
// out whether fibers wait for each other, compare two snapshots, as [Explain] does: a fiber that is in the same wait in
// both (see [Fiber.Waits]) has waited all the time between them.
package snapshot

import (
	"strings"
	"time"
)

// Snapshot shows what a runtime was doing at some moment.
type Snapshot struct {
	Taken     time.Time     `json:"taken"` // the time when it was begun
	Took      time.Duration `json:"took"`  // how long it took, in nanoseconds
	Process   Process       `json:"process"`
	Fibers    []Fiber       `json:"fibers"`
	Nurseries []Nursery     `json:"nurseries"`
	Objects   []Object      `json:"objects"`
	Workers   []Worker      `json:"workers"`

	// Outside has the goroutines that hold an object, are no fibers, and wait for nothing of coir, so that they are not in
	// Fibers. Their state is StateOutside. They are known only with [Options.Stacks].
	Outside []Fiber `json:"outside,omitempty"`

	// Omitted is the number of fibers that are not in Fibers, because there were more than [Options.Fibers].
	Omitted int `json:"omitted,omitempty"`
}

// Options select what a snapshot contains.
type Options struct {
	// Fibers is the maximum number of fibers and goroutines in a snapshot; 0 means 100,000. It bounds the memory, which
	// is about 500 bytes for each. The others are counted in [Snapshot.Omitted].
	Fibers int
	// Stacks adds the stack of each fiber that has begun, and [Snapshot.Outside]. It stops the program for as long as a
	// goroutine profile does.
	Stacks bool
	// Each, if not nil, is called for each fiber, in place of adding it to [Snapshot.Fibers]. So a snapshot of any number
	// of fibers needs no more memory than one fiber. Each may return false to end the snapshot. It must not keep the
	// pointer or the slice Wait.
	Each func(*Fiber) bool
}

// Process describes the process of a snapshot, and counts the fibers of its runtime.
type Process struct {
	PID     int    `json:"pid"`
	Program string `json:"program"` // the base name of the executable
	Go      string `json:"go"`      // the version of Go
	Coir    string `json:"coir"`    // the version of coir, or (devel)

	Live    int64 `json:"live"`    // fibers that have been spawned and have not ended, without those in line for a place
	Spawned int64 `json:"spawned"` // fibers that were ever spawned
}

// State is a state of a fiber.
type State string

// The states of a fiber.
const (
	StatePending  State = "pending"  // it has not begun, and waits for a worker
	StateReady    State = "ready"    // it can run, and waits for a worker
	StateRunning  State = "running"  // a worker runs it
	StateBlocking State = "blocking" // it occupies its worker, in coir.Blocking or another call that blocks: see Call
	StateWaiting  State = "waiting"  // it waits for what Wait says
	StateOutside  State = "outside"  // it runs on a goroutine of its own, and waits for nothing of coir

	// StateGoroutine is the state of a goroutine that is not a fiber and waits for what Wait says. Goroutines that wait
	// for nothing of coir are not in a snapshot.
	StateGoroutine State = "goroutine"
)

// FirstGoroutine plus the number of a goroutine is the ID by which a snapshot knows the goroutine.
const FirstGoroutine = 1 << 52

// Fiber is a fiber, the body of a Run, or a goroutine that is not a fiber but waits for an object of coir. Such a
// goroutine has State [StateGoroutine], no nursery, and a name that ends with its number: goroutine[34], or
// handler=/orders[34] if it has labels of package [runtime/pprof].
type Fiber struct {
	ID      uint64    `json:"id"`
	Name    string    `json:"name"`
	Nursery uint64    `json:"nursery"` // the nursery that it belongs to
	Main    bool      `json:"main,omitempty"`
	State   State     `json:"state"`
	Since   time.Time `json:"since,omitzero"`    // when it began to wait, or entered coir.Blocking, to about 10 ms; zero: not known
	Spawned string    `json:"spawned"`           // the place, as file:line; empty for the body of a Run
	Wait    []Wait    `json:"wait,omitempty"`    // what it waits for: any one of them ends the wait
	More    int       `json:"more,omitempty"`    // how many cases of a select are not in Wait, which has 64 at most
	Waits   uint64    `json:"waits"`             // the number of this wait: no two waits of a fiber have the same number
	Until   time.Time `json:"until,omitzero"`    // when the wait ends by itself; zero if it does not
	Foreign bool      `json:"foreign,omitempty"` // it waits with a context from outside of coir, whose end also ends the wait
	Stack   string    `json:"stack,omitempty"`   // see Options.Stacks
	At      string    `json:"at,omitempty"`      // the line of the program where it is, if its stack is known
	System  bool      `json:"system,omitempty"`  // it belongs to coir, not to the program

	// Call is what a fiber does in Go, if it occupies its worker or has a goroutine of its own: "running" (it computes),
	// "syscall", "IO wait" (it waits for the network or a pipe), or "native wait" (such as a native channel). It is empty
	// if the runtime does not know that, as without assembly.
	Call string `json:"call,omitempty"`
}

// Blocked returns what a fiber waits for in Go, if it occupies its worker or has a goroutine of its own. The words are
// those of a stack, such as "chan receive", or those of Call if the stack is not known. Blocked returns "" if the fiber
// does not wait in Go, or if that is not known.
func (f *Fiber) Blocked() string {
	switch f.State {
	case StateBlocking, StateRunning, StateOutside:
	default:
		return ""
	}
	if f.Stack == "" && f.Call == computing {
		return ""
	}
	if f.Stack == "" {
		return f.Call
	}
	head, _, _ := strings.Cut(f.Stack, "\n") // goroutine 7 [chan receive, 3 minutes]:
	_, state, _ := strings.Cut(head, "[")
	if i := strings.IndexAny(state, ",]"); i >= 0 {
		state = state[:i]
	}
	switch state {
	case "running", "runnable", "coroutine":
		return ""
	}
	return state
}

// computing is the value of Call for a fiber that computes.
const computing = "running"

// computes reports whether a fiber computes, as far as that is known.
func (f *Fiber) computes() bool {
	if f.Stack != "" {
		return f.Blocked() == ""
	}
	return f.Call == computing
}

// Wait is something that a fiber waits for.
type Wait struct {
	Kind WaitKind `json:"kind"`
	// Text is the wait in words that follow "waits": to send to orders.
	Text    string `json:"text"`
	Object  uint64 `json:"object,omitempty"`  // the number of the object, if there is one
	Fiber   uint64 `json:"fiber,omitempty"`   // the fiber whose end it waits for
	Nursery uint64 `json:"nursery,omitempty"` // the nursery whose children it waits for, or in which it waits for a place
}

// WaitKind is a kind of wait.
type WaitKind string

// The kinds of waits.
const (
	WaitSend   WaitKind = "send"   // to a channel
	WaitRecv   WaitKind = "recv"   // from a channel
	WaitSleep  WaitKind = "sleep"  // for a time
	WaitEnd    WaitKind = "end"    // for the end of a fiber
	WaitJoin   WaitKind = "join"   // for the children of a nursery
	WaitPlace  WaitKind = "place"  // for a place in a nursery with a limit; a fiber that waits for its first place has not begun
	WaitCancel WaitKind = "cancel" // for the cancel of a context
	WaitUse    WaitKind = "use"    // for another object, such as a lock, an event or a promise
)

// Nursery is a nursery that has not ended.
type Nursery struct {
	ID       uint64    `json:"id"`
	Owner    uint64    `json:"owner"`    // the fiber that opened it
	Parent   uint64    `json:"parent"`   // the nursery of that fiber; 0 for the nursery of a Run
	Children int       `json:"children"` // children that have not ended, without those in line for a place
	Limit    int       `json:"limit,omitempty"`
	Deadline time.Time `json:"deadline,omitzero"`
	Ended    bool      `json:"ended,omitempty"` // its context was cancelled, or its time has passed
	Cause    string    `json:"cause,omitempty"` // the cause of the end: the result of its Error method
}

// KindPool is the Kind of the [Object] of a pool. Its Len, its counters and its holders have meanings of their own.
const KindPool = "pool"

// Object is something that fibers and goroutines wait for, or hold. It is in the snapshot if a fiber or a goroutine of
// the snapshot waits for it, or if the program lists its objects.
type Object struct {
	ID   uint64 `json:"id"`
	Kind string `json:"kind"` // "channel", "mutex", "event", ...
	Name string `json:"name,omitempty"`
	Made string `json:"made,omitempty"` // the place where it was made, as file:line, if its package records it
	// Note is a short text about the object, such as: durable, 64 of 1000 in the broker. The texts of waits contain it.
	Note string `json:"note,omitempty"`
	// Trouble says what is wrong with the object now, such as: the broker is away: connection refused. It is empty if
	// nothing is known to be wrong. TroubleCertain says that the object knows this now, such as from a lost connection.
	// Otherwise the trouble may be over, because the object last learned of it from a failed request.
	Trouble        string    `json:"trouble,omitempty"`
	TroubleSince   time.Time `json:"troubleSince,omitzero"`
	TroubleCertain bool      `json:"troubleCertain,omitempty"`

	// For channels and similar objects. Len is also the number of lent values of a pool, or of open tickets of a desk.
	Len      int    `json:"len,omitempty"`
	Cap      int    `json:"cap,omitempty"` // -1: any number
	High     int    `json:"high,omitempty"`
	Sent     uint64 `json:"sent,omitempty"`
	Received uint64 `json:"received,omitempty"`
	Dropped  uint64 `json:"dropped,omitempty"`
	Closed   bool   `json:"closed,omitempty"`

	// GaveUp counts the waits for a lock, a semaphore or a similar object that ended without it, such as by a time limit.
	GaveUp uint64 `json:"gaveUp,omitempty"`

	Restarts uint64 `json:"restarts,omitempty"` // restarts of the children of a supervisor of package supervise

	Redelivered uint64 `json:"redelivered,omitempty"` // received values of a remote channel that had been delivered before
	Dead        uint64 `json:"dead,omitempty"`        // values of a remote channel that became dead letters

	Sender   uint64 `json:"sender,omitempty"`   // the last fiber that has sent to it, or waits to send
	Receiver uint64 `json:"receiver,omitempty"` // the last fiber that has received from it, or waits to receive

	SenderBefore   uint64 `json:"senderBefore,omitempty"`   // the fiber that was Sender before
	ReceiverBefore uint64 `json:"receiverBefore,omitempty"` // the fiber that was Receiver before

	// The last to send, or to receive, was a goroutine that is not a fiber; or another process may do so.
	FromOutside bool `json:"fromOutside,omitempty"`
	ToOutside   bool `json:"toOutside,omitempty"`

	// Holders are the fibers and goroutines that hold the object, if they are known, and Ends is what they do to end a
	// wait, such as "unlock". On a processor of 32 bits, the goroutines that hold a lock are not known. The holders of a
	// pool are those to which it has lent its values; one that has several values is listed several times.
	Holders []uint64 `json:"holders,omitempty"`
	Ends    string   `json:"ends,omitempty"`

	// HeldSince says for each of Holders since when it has been among the holders in each snapshot, and WaitedSince since
	// when the object has been waited for in each snapshot. Snapshots without the object do not count. Between two
	// snapshots a holder may have given the object back and taken it again. Package inspect sets both, from the snapshots
	// that it has taken, if that is at least a second; they are not known from one snapshot.
	HeldSince   []time.Time `json:"heldSince,omitempty"`
	WaitedSince time.Time   `json:"waitedSince,omitzero"`

	Senders   int       `json:"senders,omitempty"`   // fibers and goroutines that wait to send
	Receivers int       `json:"receivers,omitempty"` // fibers and goroutines that wait to receive
	Waiters   int       `json:"waiters,omitempty"`   // fibers and goroutines that wait for it otherwise
	Oldest    time.Time `json:"oldest,omitzero"`     // when the oldest of these waits began

	Tickets []Ticket `json:"tickets,omitempty"` // the oldest open tickets of a desk, at most 100
}

// Ticket is an open ticket of a desk.
type Ticket struct {
	Name   string    `json:"name,omitempty"`
	Opened time.Time `json:"opened"`
}

// WorkerState is a state of a worker.
type WorkerState string

// The states of a worker.
const (
	WorkerStateRunning  WorkerState = "running"  // it runs fibers, or looks for one
	WorkerStateIdle     WorkerState = "idle"     // it sleeps
	WorkerStateBlocking WorkerState = "blocking" // its fiber is in a blocking call: see StateBlocking
	WorkerStateHeld     WorkerState = "held"     // its fiber has not yielded, and another worker stands in
)

// Worker is a worker of the runtime.
type Worker struct {
	ID    int         `json:"id"`
	State WorkerState `json:"state"`
	Queue int         `json:"queue"` // fibers in its own queue
	Fiber uint64      `json:"fiber,omitempty"`
	// Beats counts the switches of the worker. If neither Beats nor Fiber changes from one snapshot to the next, that
	// fiber has not yielded.
	Beats uint64 `json:"beats"`
	// Since is the time since which neither Beats nor Fiber has changed, to about 10 ms. It is zero if that is not known.
	Since time.Time `json:"since,omitzero"`
}
