//go:build !race

package race

import "unsafe"

// Enabled reports whether this is a race build.
const Enabled = false

// Disable hides this goroutine's synchronisation from the detector until Enable. It nests.
func Disable() {}

// Enable ends one Disable.
func Enable() {}

// EnterUser does nothing.
func EnterUser() {}

// LeaveUser does nothing.
func LeaveUser() {}

// Alone calls do.
func Alone(do func()) { do() }

// Goroutines returns how many goroutines Alone has started.
func Goroutines() int64 { return 0 }

// Errors returns 0.
func Errors() int { return 0 }

// Acquire orders what follows after every earlier Release of p.
func Acquire(unsafe.Pointer) {}

// Release orders what came before it, and what earlier releases of p ordered, before a later Acquire of p.
func Release(unsafe.Pointer) {}

// Meet does nothing.
func Meet(unsafe.Pointer) {}

// Offer does nothing.
func Offer(unsafe.Pointer) {}

// Reads does nothing.
func Reads(unsafe.Pointer, uintptr) {}

// Wrote does nothing.
func Wrote(unsafe.Pointer, uintptr) {}
