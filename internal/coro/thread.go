//go:build !race

package coro

import "runtime"

// A goroutine that is locked to its thread, by runtime.LockOSThread or because it is inside a cgo callback, cannot
// swap. A swap passes the thread on to the resumed goroutine. The runtime allows a swap only if the slot was made under
// the same lock as that of the goroutine that swaps, and otherwise ends the process (coroswitch_m in runtime/coro.go).
// The slots of this package are made by goroutines that have no lock.
//
// So another goroutine, the stand-in, swaps in its place. The stand-in has no lock. It is suspended in the slot while
// the locked goroutine waits for it on its own thread, like any blocked goroutine. Control that is passed to the locked
// goroutine reaches the stand-in, which ends, and the locked goroutine continues:
//
//	slot A      running      locked, waits
//	 a           c                             c is locked and transfers to a
//	 stand-in    a            c
//	 b           stand-in     c                b transfers to c
//	 b           c                             the stand-in has ended
//
// Nothing changes for other coroutines: control passes exactly as if c sat in the slot. It costs two thread wakes, some
// ten microseconds instead of a tenth of one.
//
// The lock is visible in a word of the runtime's record of the goroutine: see [findLock]. If that word is unknown, coro
// asks the runtime before each swap, which costs as much as [G] does there.

// tie records whether the goroutine of a coroutine is locked to its thread.
type tie struct {
	word *uintptr // not 0 while it is locked; nil for a goroutine of this module, which is never locked
}

// unknown is the word of a tie whose real word is unknown.
var unknown uintptr = 1

// init is called by the coroutine's goroutine.
func (t *tie) init() { t.word = lockWord() }

// maybe is Bound without the final check, cheap enough for every swap.
func (t *tie) maybe() bool { return t.word != nil && *t.word != 0 }

// Bound reports whether the running goroutine, which must be the coroutine's own, is locked to its thread.
func (t *tie) Bound() bool { return t.maybe() && bound() }

// bound asks the runtime whether the running goroutine is locked to its thread: the first line of a stack dump says so.
func bound() bool {
	var buf [128]byte
	n := runtime.Stack(buf[:], false)
	const locked = "locked to thread"
	for i := 0; i+len(locked) <= n && buf[i] != ']' && buf[i] != '{'; i++ { // labels follow, which may be any text
		if string(buf[i:i+len(locked)]) == locked {
			return true
		}
	}
	return false
}

// standIn calls swap on a new goroutine and waits until it has returned.
func standIn(swap func()) {
	back := make(chan struct{})
	go func() {
		defer close(back)
		swap()
	}()
	<-back
	ForgetWait()
}
