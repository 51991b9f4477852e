//go:build race

package race

import (
	"runtime"
	"unsafe"
)

// Enabled reports whether this is a race build.
const Enabled = true

// Disable hides this goroutine's synchronisation from the detector until Enable. It nests.
func Disable() { runtime.RaceDisable() }

// Enable ends one Disable. A goroutine must not end between the two (golang/go#60934).
func Enable() { runtime.RaceEnable() }

// EnterUser is for a call out of a hidden section into code that is not coir's, such as a user's function or a context:
// its synchronisation is seen, until LeaveUser. It does not nest, so the caller must be in one hidden section, not in two.
//
// If the user's code panics there is no LeaveUser, and so the functions above must not end their section by a deferred
// Enable; or both calls are deferred.
func EnterUser() { Enable() }

// LeaveUser ends the call, and hides what follows.
func LeaveUser() { Disable() }

// Acquire orders what follows after every Release of p that came before.
func Acquire(p unsafe.Pointer) { runtime.RaceAcquire(p) }

// Release orders what came before, and what earlier releases of p ordered, ahead of a later Acquire of p.
func Release(p unsafe.Pointer) { runtime.RaceReleaseMerge(p) }

// Meet is for a place that passes a value on, inside a hidden section: whoever meets there is ordered after all who met there
// before.
func Meet(p unsafe.Pointer) {
	Enable()
	Acquire(p)
	Release(p)
	Disable()
}

// Offer is for a place of the caller's own that others come to meet at, inside a hidden section: whoever meets there later is
// ordered after the caller. What met there before, for an earlier use of the place, is forgotten.
func Offer(p unsafe.Pointer) {
	Enable()
	runtime.RaceRelease(p)
	Disable()
}

// Reads tells of a read of n bytes at p that belongs to the program.
func Reads(p unsafe.Pointer, n uintptr) { runtime.RaceReadRange(p, int(n)) }

// Wrote tells, inside a hidden section, of a write of n bytes at p that belongs to the program.
func Wrote(p unsafe.Pointer, n uintptr) {
	Enable()
	runtime.RaceWriteRange(p, int(n))
	Disable()
}
