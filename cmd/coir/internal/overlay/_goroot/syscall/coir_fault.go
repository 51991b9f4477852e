//go:build unix

package syscall

import (
	"internal/coir"
	"unsafe"
)

// This file implements the faults that a connection meets with -faults net. Each fault is a decision of the schedule;
// see package runtime.

// coirFault returns the operation code of the fault that the calling goroutine meets, or 0. The bits of kinds are the
// faults that it can meet.
//
//go:linkname coirFault
//go:noescape
func coirFault(kinds uint32, p unsafe.Pointer) uint8

//go:linkname coirPause
func coirPause(ns int64)

// The kinds of faults, as bits.
const (
	coirResets = 1 << iota
	coirRefuses
	coirShortens
	coirDelays
	coirHangs
)

// coirLateBy is the length of a delay, in nanoseconds.
const coirLateBy = 10e9

// meets is called before an operation moves n bytes over a connection. The operation may meet a fault. meets returns
// the number of bytes that the operation may move.
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

// refuses reports whether the listener refuses a connection, which is a fault.
//
//go:norace
func (s *coirSocket) refuses() bool {
	return coirFault(coirRefuses, unsafe.Pointer(s.obj)) != 0
}
