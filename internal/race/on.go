//go:build race

package race

import (
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Enabled reports whether this is a race build.
const Enabled = true

// Disable hides this goroutine's synchronisation from the detector until Enable. It nests.
func Disable() { runtime.RaceDisable() }

// Enable ends one Disable. A goroutine must not exit between the two (golang/go#60934).
func Enable() { runtime.RaceEnable() }

// EnterUser begins a call from a hidden section into code that is not coir's, such as a user's function or a context.
// The detector sees the synchronisation of that code until LeaveUser. EnterUser does not nest, so the caller must be in
// one hidden section, not in two.
//
// If the user's code panics, LeaveUser is not called. So the caller of EnterUser must not end its section by a deferred
// Enable, unless both calls are deferred.
func EnterUser() { Enable() }

// LeaveUser ends the call and hides what follows.
func LeaveUser() { Disable() }

// Alone calls do in a new goroutine, and returns when do has returned. It is called in a hidden section, so do is
// ordered after nothing, and nothing is ordered after do: both sides use Release and Acquire for the order that they
// need. Alone is for objects that the first caller creates for others, which must not be ordered after that caller, and
// for calls into code whose synchronisation must stay visible when the depth of the hidden section is unknown. do must
// not panic. Only in a race build, where it is in a separate goroutine, may it call runtime.Goexit.
//
// Alone waits for a mutex and not for a channel, because package sim would attribute a wait for a channel to the
// program. The detector does not see that the mutex is created before the goroutine uses it, because the start of the
// goroutine is hidden.
//
//go:norace
func Alone(do func()) {
	alone.Add(1)
	var done sync.Mutex
	done.Lock()
	go func() {
		defer done.Unlock()
		do()
	}()
	done.Lock()
}

var alone atomic.Int64

// Goroutines returns how many goroutines Alone has started.
//
//go:norace
func Goroutines() int64 { return alone.Load() }

// Errors returns how many races the detector has reported in this process.
//
//go:norace
func Errors() int { return runtime.RaceErrors() }

// Acquire orders what follows after every earlier Release of p.
func Acquire(p unsafe.Pointer) { runtime.RaceAcquire(p) }

// Release orders what came before it, and what earlier releases of p ordered, before a later Acquire of p.
func Release(p unsafe.Pointer) { runtime.RaceReleaseMerge(p) }

// Meet orders the caller after all earlier calls of Meet and Offer for p, the address of a place through which values
// pass. It is called in a hidden section.
func Meet(p unsafe.Pointer) {
	Enable()
	Acquire(p)
	Release(p)
	Disable()
}

// Offer orders the caller before later calls of Meet for p, the address of a place that the caller owns. It forgets
// earlier calls, which were for an earlier use of the place. It is called in a hidden section.
func Offer(p unsafe.Pointer) {
	Enable()
	runtime.RaceRelease(p)
	Disable()
}

// Reads reports that the program reads n bytes at p.
func Reads(p unsafe.Pointer, n uintptr) { runtime.RaceReadRange(p, int(n)) }

// Wrote reports that the program writes n bytes at p. It is called in a hidden section.
func Wrote(p unsafe.Pointer, n uintptr) {
	Enable()
	runtime.RaceWriteRange(p, int(n))
	Disable()
}
