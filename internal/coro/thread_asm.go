//go:build (386 || amd64 || arm64) && !purego && !race

package coro

import "unsafe"

// lockAt is where the runtime's record of a goroutine says which thread the goroutine is locked to, or 0 if that was
// not found.
var lockAt = findLock()

func lockWord() *uintptr {
	if lockAt == 0 {
		return &unknown
	}
	return gAt(lockAt)
}

// findLock compares two goroutines. The variables of a package are set by the main goroutine, which is locked to the
// main thread until all packages are: its record names the thread twice, as the one that runs it and as the one it is
// locked to. The record of another goroutine names its thread only once, and has 0 in the second place. If there is
// not exactly one such place, or if the runtime does not say that this goroutine is locked (a plugin is loaded by
// another one), nothing has been found. To call runtime.LockOSThread and look would be shorter, but starts a thread
// for good.
//
// A wrong place cannot do harm by being set: standIn is used only after bound has agreed.
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
