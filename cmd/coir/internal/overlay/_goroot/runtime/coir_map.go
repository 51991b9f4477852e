package runtime

import (
	"unsafe"
)

// Addresses differ from process to process, because the runtime allocates at moments of real time. So maps do not hash
// them: the order of a map would differ too. They hash numbers, which addresses get in the order in which they are
// first hashed. Two addresses may have the same number, but an address keeps its own until its object is freed: a map
// that was made before the first schedule must find its keys in all of them.

// coirAddress is an address on the heap, and its number.
type coirAddress struct {
	addr   uintptr // 0: the place is free; coirGone: it was not always
	run    uint32  // the last schedule that has hashed it
	number uint32
}

const coirGone = 1

// coirAddresses has the addresses that were hashed, and whose objects live.
//
//   - table is not on the heap, and does not keep objects. Its length is a power of two. An address is between its hash
//     and the next free place.
//   - taken places of table are not free: at most three quarters.
var coirAddresses struct {
	lock  mutex
	table []coirAddress
	taken int
	run   uint32 // the schedule of numbered
	// numbered counts the addresses that the schedule has hashed: also those that had a number before, so that the
	// next number is the same as in another schedule. others counts those that were hashed outside of schedules.
	numbered, others uint32
}

// coirHashAddress hashes an address by its number.
func coirHashAddress(p unsafe.Pointer, h uintptr) uintptr {
	n := coirNumber(uintptr(p))
	return memhash64(noescape(unsafe.Pointer(&n)), h)
}

func coirNumber(addr uintptr) uint64 {
	if addr == 0 {
		return 0
	}
	if spanOfHeap(addr) == nil { // a global, or on a stack: that is only looked for, and is in no map
		return uint64(addr - firstmoduledata.text)
	}
	gp, t := getg(), &coirAddresses
	in := coirIn(gp)
	lock(&t.lock)
	if in && t.run != gp.coir.run {
		t.run, t.numbered = gp.coir.run, 0
	}
	if t.taken*4 >= len(t.table)*3 {
		coirGrowAddresses()
	}
	a := coirPlaceOf(addr)
	if a.addr == 0 {
		*a = coirAddress{addr: addr}
		t.taken++
	}
	if in && a.run != t.run {
		t.numbered++
		a.run = t.run
		if a.number == 0 {
			a.number = t.numbered
		}
	} else if a.number == 0 {
		t.others++
		a.number = t.others | 1<<31
	}
	n := uint64(a.number)
	unlock(&t.lock)
	return n
}

// coirPlaceOf returns the place of an address, or a free one for it.
func coirPlaceOf(addr uintptr) *coirAddress {
	t := coirAddresses.table
	for i := coirMix(uint64(addr)); ; i++ {
		if a := &t[i&uint64(len(t)-1)]; a.addr == addr || a.addr == 0 {
			return a
		}
	}
}

// coirGrowAddresses makes room for at least one address more.
func coirGrowAddresses() {
	t := &coirAddresses
	live := 0
	for i := range t.table {
		if t.table[i].addr > coirGone {
			live++
		}
	}
	size := 1024
	for size < 2*(live+1) {
		size *= 2
	}
	old := t.table
	p := sysAlloc(uintptr(size)*unsafe.Sizeof(coirAddress{}), &memstats.other_sys, "coir")
	t.table = unsafe.Slice((*coirAddress)(p), size)
	t.taken = live
	for i := range old {
		if a := &old[i]; a.addr > coirGone {
			*coirPlaceOf(a.addr) = *a
		}
	}
	if len(old) > 0 {
		sysFree(unsafe.Pointer(&old[0]), uintptr(len(old))*unsafe.Sizeof(coirAddress{}), &memstats.other_sys)
	}
}

// coirForgetAddresses forgets the addresses of objects that are about to be freed. See coirForget.
func coirForgetAddresses() {
	for i := range coirAddresses.table {
		if a := &coirAddresses.table[i]; coirFreed(a.addr) {
			*a = coirAddress{addr: coirGone}
		}
	}
}

// coirFreed reports, when all marks are set, whether the object at an address on the heap is about to be freed.
func coirFreed(addr uintptr) bool {
	span := spanOfHeap(addr)
	return span != nil && !span.markBitsForIndex(span.objIndex(addr)).isMarked()
}
