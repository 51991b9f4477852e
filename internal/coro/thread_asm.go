//go:build (386 || amd64 || arm64) && !purego && !race

package coro

import "unsafe"

// lockAt is the offset, in the runtime's record of a goroutine, of the thread that the goroutine is locked to, or 0 if
// unknown.
var lockAt = findLock()

func lockWord() *uintptr {
	if lockAt == 0 {
		return &unknown
	}
	return gAt(lockAt)
}

// findLock compares two goroutines. The main goroutine initialises packages, and is locked to the main thread until it
// has initialised all of them. Its record names the thread twice, as the one that runs it and as the one it is locked
// to. The record of another goroutine names its thread only once, and has 0 in the second place. If there is not
// exactly one such place, or if the runtime does not say that this goroutine is locked (because another one loads a
// plugin), findLock returns 0. Calling runtime.LockOSThread and comparing would be shorter, but starts a thread that
// stays.
//
// A wrong place that is not 0 does no harm: standIn is used only if bound agrees.
func findLock() uintptr {
	const size = unsafe.Sizeof(uintptr(0))
	const words = 40 // the record has more, and the place is the 26th in Go 1.26 and 1.27
	type record [words]uintptr
	look := func(r *record) {
		for i := range r {
			r[i] = *gAt(uintptr(i) * size)
		}
	}
	if !bound() {
		return 0
	}
	var locked, free record
	look(&locked)
	done := make(chan struct{})
	go func() {
		defer close(done)
		look(&free)
	}()
	<-done
	found := uintptr(0)
	for i := range words {
		for j := i + 1; j < words; j++ {
			if locked[i] != 0 && locked[i] == locked[j] && free[i] != 0 && free[j] == 0 {
				if found != 0 {
					return 0
				}
				found = uintptr(j) * size
			}
		}
	}
	return found
}
