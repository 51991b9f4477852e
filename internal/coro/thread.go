//go:build !race

package coro

import "runtime"

// A goroutine that is locked to its thread, by runtime.LockOSThread or because it is inside a cgo callback, cannot
// swap. A swap hands the thread on to the goroutine that is resumed. The runtime allows it only if the lock of the
// goroutine that swaps is the one that the slot was made under, and otherwise ends the process (coroswitch_m in
// runtime/coro.go). Our slots are made by goroutines that have no lock.
//
// So another goroutine swaps in its place. This stand-in has no lock. It sits in the slot while the locked goroutine
// waits for it, on its own thread, as any goroutine waits. Control that is passed to the locked goroutine reaches the
// stand-in, which ends, and the locked goroutine goes on:
//
//	slot A      running      locked, waits
//	 a           c                             c is locked and transfers to a
//	 stand-in    a            c
//	 b           stand-in     c                b transfers to c
//	 b           c                             the stand-in has ended
//
// For everyone else nothing changes: control passes exactly as if c sat in the slot. It costs two wakes of a thread,
// some ten microseconds in place of a tenth of one.
//
// The lock is seen in the word of the runtime's record that keeps it: see [findLock]. Where that is not known the
// runtime is asked before each swap, which costs as much as [G] does there.

// tie tells whether the goroutine of a coroutine is locked to its thread.
type tie struct {
	word *uintptr // is not 0 while it is; nil for a goroutine of this module, which never is
}

// unknown is the word of a tie that has none of its own.
var unknown uintptr = 1

// init is called by the coroutine's goroutine.
func (t *tie) init() { t.word = lockWord() }

// maybe is Bound without the proof, so that it costs next to nothing before a swap.
func (t *tie) maybe() bool { return t.word != nil && *t.word != 0 }

// Bound reports whether the running goroutine, which must be the coroutine's own, is locked to its thread.
func (t *tie) Bound() bool { return t.maybe() && bound() }

// bound asks the runtime whether the running goroutine is locked to its thread: the first line of a stack dump says so.
func bound() bool {
	var buf [128]byte
	n := runtime.Stack(buf[:], false)
	const locked = "locked to thread"
	for i := 0; i+len(locked) <= n && buf[i] != '\n'; i++ {
		if string(buf[i:i+len(locked)]) == locked {
			return true
		}
	}
	return false
}

// standIn calls swap on a goroutine of its own and waits until it has returned.
func standIn(swap func()) {
	back := make(chan struct{})
	go func() {
		defer close(back)
		swap()
	}()
	<-back
}
