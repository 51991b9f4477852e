package runtime

import (
	"internal/coir"
	"unsafe"
)

// coirFaults decides which operations fail, with -faults. An operation that can meet a fault offers the kinds of fault
// that it can meet. The seed determines which offers become decisions; if all did, most schedules would consist of
// faults only. After coirMostFaults faults there are no more, so that a program that tries again can succeed.
type coirFaults struct {
	may     uint32 // see coir.Config
	muted   uint32
	offered uint64
	had     int
}

const coirMostFaults = 3

// coirFault returns the operation code of the fault that the calling goroutine meets on the object p, or 0. The bits of
// kinds are the faults that it can meet.
func coirFault(kinds uint32, p unsafe.Pointer) uint8 {
	s, gp := &coirSched, getg()
	if kinds &= s.may; kinds == 0 || s.had >= coirMostFaults || !coirActs(gp) {
		return 0
	}
	s.offered++
	if coirMix(s.seed^s.offered<<32)%6 != 0 {
		return 0
	}
	n := 1
	for k := kinds; k != 0; k &= k - 1 {
		n++
	}
	lock(&s.mu)
	way := coirDecide(gp, coir.Fault, n)
	unlock(&s.mu)
	if way == 0 {
		return 0
	}
	op := uint8(coir.OpReset)
	for ; ; op++ {
		if kinds&(1<<(op-coir.OpReset)) != 0 {
			if way--; way == 0 {
				break
			}
		}
	}
	which := s.had
	s.had++
	coirPointOf(op, p, coir.Keep) // so that the report shows the fault
	if s.muted>>which&1 != 0 {
		return 0
	}
	return op
}

//go:linkname syscall_coirFault syscall.coirFault
func syscall_coirFault(kinds uint32, p unsafe.Pointer) uint8 { return coirFault(kinds, p) }

// syscall_coirPause makes the calling goroutine sleep.
//
//go:linkname syscall_coirPause syscall.coirPause
func syscall_coirPause(ns int64) { timeSleep(ns) }

//go:linkname testing_coirFault testing.coirFault
func testing_coirFault() bool {
	return coirFault(1<<(coir.OpFault-coir.OpReset), unsafe.Pointer(&coirSched.had)) != 0
}
