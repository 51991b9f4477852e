package coro

import (
	"bytes"
	"runtime"
	"strconv"
)

// Two functions need an assembly stub each:
//
//	G         identifies the running goroutine: the address of the runtime's record of it, or its number under purego.
//	          It is unique among live goroutines and may be reused once a goroutine has ended.
//	CallerPC  returns where its caller was called from. It reads the frame pointer chain, or asks runtime.Callers.

// GoroutineID reads the number that stack dumps show for the running goroutine. It costs a microsecond.
func GoroutineID() uint64 {
	var buf [32]byte
	return parseID(buf[:runtime.Stack(buf[:], false)])
}

// parseID extracts the number from "goroutine 17 [running]:".
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
