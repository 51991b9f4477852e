//go:build (386 || amd64 || arm64) && !purego

package coro

import (
	"math/bits"
	"sync"
	"unsafe"
)

// NumberOf returns the number that stack dumps show for the goroutine for which G returned g, or 0 if it is unknown. A
// record is never freed, so it may be read after the goroutine has ended, but it may then have the number of another
// goroutine.
//
//go:norace
func NumberOf(g uintptr) uint64 {
	at := numberAt()
	if at == 0 || g == 0 {
		return 0
	}
	g += at
	return uint64(**(**uintptr)(unsafe.Pointer(&g)))
}

// numberAt is the offset, in the runtime's record of a goroutine, of its number, or 0 if unknown. On 32 bits it is that
// of the lower half.
var numberAt = sync.OnceValue(findNumber)

// findNumber searches the records of a few goroutines for the offset that holds each one's number.
//
//go:norace
func findNumber() uintptr {
	all := ^uint64(0)
	for range 4 {
		found := make(chan uint64)
		go findOwn(found)
		all &= <-found
	}
	if bits.OnesCount64(all) != 1 {
		return 0
	}
	return uintptr(bits.TrailingZeros64(all)) * unsafe.Sizeof(uintptr(0))
}

// findOwn sends the set of words, as bits, in the record of the running goroutine that hold its number. It searches 40
// words. The record has more, but the number is the 20th in Go 1.26.
//
//go:norace
func findOwn(found chan<- uint64) {
	id := uintptr(GoroutineID())
	set := uint64(0)
	for i := range 40 {
		if *gAt(uintptr(i) * unsafe.Sizeof(id)) == id {
			set |= 1 << i
		}
	}
	found <- set
}
