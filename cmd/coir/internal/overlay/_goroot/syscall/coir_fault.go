//go:build unix

package syscall

import (
	"internal/coir"
	"unsafe"
)

// The faults that a connection meets with -faults net. Each is a decision of the schedule: see package runtime.

// coirFault returns the operation of a fault, or 0. kinds are those that can be met, as bits.
//
//go:linkname coirFault
//go:noescape
func coirFault(kinds uint32, p unsafe.Pointer) uint8

//go:linkname coirPause
func coirPause(ns int64)

// The kinds, as bits.
const (
	coirResets = 1 << iota
	coirRefuses
	coirShortens
	coirDelays
	coirHangs
)

// coirLateBy is how long a delay is.
const coirLateBy = 10e9

// meets asks whether an operation on a connection, of n bytes, meets a fault. It returns how many of them the operation
// may move.
//
//go:norace
func (s *coirSocket) meets(n int) int {
	if s.pipe || !s.connected || s.rst || s.hangs || n == 0 {
		return n
	}
	kinds := uint32(coirResets | coirDelays | coirHangs)
	if n > 1 {
		kinds |= coirShortens
	}
	switch coirFault(kinds, unsafe.Pointer(s.obj)) {
	case coir.OpReset:
		for _, end := range [2]*coirSocket{s, s.out.to} {
			end.rst, end.err = true, ECONNRESET
			end.in.n, end.in.start = 0, 0
			end.wake()
		}
	case coir.OpShorten:
		return (n + 1) / 2
	case coir.OpDelay:
		coirPause(coirLateBy)
	case coir.OpHang:
		s.hangs, s.out.to.hangs = true, true
	}
	return n
}

// refuses asks whether a listener refuses a connection.
//
//go:norace
func (s *coirSocket) refuses() bool {
	return coirFault(coirRefuses, unsafe.Pointer(s.obj)) != 0
}
