package coro

import (
	"bytes"
	"runtime"
	"strconv"
)

// The two questions that cost an assembly stub each:
//
//	G         which goroutine is this? The address of the runtime's record of it, or its number under purego. It is
//	          unique among live goroutines and may come again once a goroutine has ended.
//	CallerPC  where was my caller called from? Read off the frame pointer chain, or asked of runtime.Callers.

// GoroutineID reads the number that stack dumps show for the running goroutine. It costs a microsecond.
func GoroutineID() uint64 {
	var buf [32]byte
	return parseID(buf[:runtime.Stack(buf[:], false)])
}

// parseID takes the number out of "goroutine 17 [running]:".
func parseID(dump []byte) uint64 {
	dump = bytes.TrimPrefix(dump, []byte("goroutine "))
	if i := bytes.IndexByte(dump, ' '); i > 0 {
		dump = dump[:i]
	}
	id, err := strconv.ParseUint(string(dump), 10, 64)
	if err != nil {
		panic("coir: cannot read the goroutine number from " + strconv.Quote(string(dump)))
	}
	return id
}

// CheckThread panics if the running goroutine is bound to its thread, by runtime.LockOSThread or by a cgo callback: to
// suspend it as a coroutine would kill the process. It costs a microsecond and more; checked builds call it before
// each switch.
//
// Spec: FB-30
//
//go:norace
func CheckThread() {
	var buf [128]byte
	n := runtime.Stack(buf[:], false)
	// By hand: the race detector follows the code of package bytes, into goroutines whose birth is hidden from it.
	const locked = "locked to thread"
	for i := 0; i+len(locked) <= n && buf[i] != '\n'; i++ {
		j := 0
		for j < len(locked) && buf[i+j] == locked[j] {
			j++
		}
		if j == len(locked) {
			panic("coir: a fiber that is locked to its OS thread (runtime.LockOSThread, or a cgo callback) must not wait: " +
				"unlock the thread first, or do this work in a goroutine of its own")
		}
	}
}
