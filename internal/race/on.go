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

// Acquire orders what follows after every Release of p that came before.
func Acquire(p unsafe.Pointer) { runtime.RaceAcquire(p) }

// Release orders what came before, and what earlier releases of p ordered, ahead of a later Acquire of p.
func Release(p unsafe.Pointer) { runtime.RaceReleaseMerge(p) }
