package coir

// The operations that a goroutine can be about to perform at a point. Operations of a group stand together, because
// IsFault, OnNetwork and OnLock test for groups. Add a new operation to its group. Tokens
// depend on the numbers of operations, so a new operation makes older tokens invalid; CHANGELOG.md must say so.
const (
	OpNone = iota
	OpGo
	OpSend
	OpRecv
	OpClose
	OpSelect
	OpLock
	OpTryLock
	OpUnlock
	OpRLock
	OpRUnlock
	OpWLock
	OpWUnlock
	OpAdd
	OpWait
	OpCondWait
	OpSignal
	OpBroadcast
	OpOnce
	OpYield
	OpAtomicLoad
	OpAtomicStore
	OpAtomicSwap
	OpAtomicCAS
	OpAtomicAdd
	OpAtomicBits
	OpMapLoad
	OpMapStore
	OpDone
	OpTryRLock
	OpTryWLock
	OpFail
	OpListen // this and the following are operations on sockets in memory
	OpDial
	OpAccept
	OpNetRead
	OpNetWrite
	OpNetClose
	OpPipeRead // this and the following are operations on the system's pipes in memory
	OpPipeWrite
	OpPipeClose
	OpReset // this and the following are faults, in the order of Faults
	OpRefuse
	OpShorten
	OpDelay
	OpHang
	OpFault
)

// IsFault reports whether an operation is a fault.
//
//go:norace
func IsFault(op int) bool { return op >= OpReset }

// OnNetwork reports whether an operation is on a socket or a pipe in memory, or is a fault.
//
//go:norace
func OnNetwork(op int) bool { return op >= OpListen }

// Faults contains the names of the faults that -faults accepts. Their operations begin with OpReset.
var Faults = [...]string{"reset", "refused", "short", "delay", "hang", "test"}

// Ops contains the words that reports use for each operation.
var Ops = [...]struct {
	Name string
	On   string // the kind of object that it is on; empty: reports name no object
}{
	OpNone:        {"?", ""},
	OpGo:          {"go", ""},
	OpSend:        {"send", "chan"},
	OpRecv:        {"recv", "chan"},
	OpClose:       {"close", "chan"},
	OpSelect:      {"select", ""},
	OpLock:        {"lock", "mutex"},
	OpTryLock:     {"try lock", "mutex"},
	OpUnlock:      {"unlock", "mutex"},
	OpRLock:       {"rlock", "rwmutex"},
	OpRUnlock:     {"runlock", "rwmutex"},
	OpWLock:       {"lock", "rwmutex"},
	OpWUnlock:     {"unlock", "rwmutex"},
	OpAdd:         {"add", "waitgroup"},
	OpWait:        {"wait", "waitgroup"},
	OpCondWait:    {"cond wait", "cond"},
	OpSignal:      {"signal", "cond"},
	OpBroadcast:   {"broadcast", "cond"},
	OpOnce:        {"once", "once"},
	OpYield:       {"yield", ""},
	OpAtomicLoad:  {"load", "atomic"},
	OpAtomicStore: {"store", "atomic"},
	OpAtomicSwap:  {"swap", "atomic"},
	OpAtomicCAS:   {"cas", "atomic"},
	OpAtomicAdd:   {"add", "atomic"},
	OpAtomicBits:  {"and/or", "atomic"},
	OpMapLoad:     {"load", "map"},
	OpMapStore:    {"store", "map"},
	OpDone:        {"done", "waitgroup"},
	OpTryRLock:    {"try rlock", "rwmutex"},
	OpTryWLock:    {"try lock", "rwmutex"},
	OpFail:        {"fail", ""},
	OpListen:      {"listen", ""},
	OpDial:        {"dial", "listener"},
	OpAccept:      {"accept", "listener"},
	OpNetRead:     {"read", "conn"},
	OpNetWrite:    {"write", "conn"},
	OpNetClose:    {"close", "conn"},
	OpPipeRead:    {"read", "pipe"},
	OpPipeWrite:   {"write", "pipe"},
	OpPipeClose:   {"close", "pipe"},
	OpReset:       {"fault: reset", "conn"},
	OpRefuse:      {"fault: refuse", "listener"},
	OpShorten:     {"fault: shorten", "conn"},
	OpDelay:       {"fault: delay", "conn"},
	OpHang:        {"fault: hang", "conn"},
	OpFault:       {"fault", ""},
}

// Kinds of decisions.
const (
	Keep   = iota // way 0 is that the goroutine with the turn keeps it; another way is a preemption
	Free          // the goroutine that had the turn waits, or has ended
	GiveUp        // it gives the turn up, by Gosched or after many points; with the last way it keeps it
	Case          // cases of a select that are ready
	Fault         // way 0 is no fault
)

// States of a goroutine.
const (
	Ready = iota
	Waiting
	Ended
	Calling // it is in a system call, and the turn was taken from it
)

// What a goroutine of a schedule waits for. Package runtime has the table of its reasons: coirWaits. A goroutine that
// waits for a reason with WaitNone, such as the garbage collector, keeps the turn.
const (
	WaitNone    = iota
	WaitOther   // what has no code here; reports contain the words of package runtime
	WaitKernel  // a socket or a pipe of the kernel
	WaitNetwork // a socket or a pipe in memory
	WaitFile    // the end of another operation on the same file or socket
	WaitSleep
	WaitNilChan // to send to a nil channel, or to receive from one
	WaitNoCases // a select without cases
	WaitSelect
	WaitRecv
	WaitSend
	WaitGroup // a WaitGroup
	WaitCond
	WaitLock   // a Mutex, a RWMutex, or what contains a Mutex, such as a Once
	WaitBubble // synctest.Wait, or the end of the schedule
)
