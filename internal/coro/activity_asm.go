//go:build (386 || amd64 || arm64) && !purego

package coro

import (
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
)

// ActivityOf returns what the goroutine for which G returned g does, or Unknown. The goroutine must not have ended:
// otherwise the activity may be that of another one.
//
// The runtime's record has the goroutine's status eight bytes before its number, and the reason of its wait eight bytes
// and two words after the number's first half. That is checked with goroutines whose activities are known; if it is not
// so, all activities are Unknown.
//
//go:norace
func ActivityOf(g uintptr) Activity {
	if g == 0 || !activityKnown() {
		return Unknown
	}
	status, reason := record(g)
	switch status {
	case statusRunnable, statusRunning, statusCopyStack, statusPreempted:
		return Running
	case statusSyscall:
		return InSyscall
	case statusWaiting:
		if reason == reasonIOWait {
			return InIOWait
		}
		return InWait
	}
	return Unknown
}

// The states of a goroutine, and a reason to wait, in the runtime. TestActivities checks them.
const (
	statusRunnable  = 1
	statusRunning   = 2
	statusSyscall   = 3
	statusWaiting   = 4
	statusCopyStack = 8
	statusPreempted = 9
	statusScan      = 0x1000 // is added while the stack is scanned

	reasonIOWait = 2
)

// record reads the status of a goroutine, and the reason of its wait.
//
//go:norace
func record(g uintptr) (status uint32, reason uint8) {
	at := g + numberAt()
	word := at - 8
	status = atomic.LoadUint32(*(**uint32)(unsafe.Pointer(&word))) &^ statusScan
	word = at + 8 + unsafe.Sizeof(g) + 8 // the number, a link, and the time when the wait began
	return status, **(**uint8)(unsafe.Pointer(&word))
}

// activityKnown reports whether the record is as expected.
var activityKnown = sync.OnceValue(checkActivities)

//go:norace
func checkActivities() bool {
	if numberAt() < 8 {
		return false
	}
	if status, _ := record(G()); status != statusRunning {
		return false
	}
	end, found := make(chan int), make(chan uintptr)
	defer close(end)
	var last uint8
	for range 2 {
		go receive(found, end)
		g := <-found
		status, reason := record(g)
		for turn := 0; status != statusWaiting; turn++ {
			if turn == 1_000_000 { // some tenths of a second
				return false
			}
			runtime.Gosched()
			status, reason = record(g)
		}
		if reason == 0 || reason == reasonIOWait || last != 0 && reason != last {
			return false
		}
		last = reason
	}
	return true
}

// receive sends the goroutine that runs it, and then waits to receive.
//
//go:norace
func receive(found chan<- uintptr, end <-chan int) {
	found <- G()
	<-end
}
