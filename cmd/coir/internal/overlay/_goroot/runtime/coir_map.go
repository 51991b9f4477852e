package runtime

import (
	"unsafe"
)

// Addresses differ from process to process, because the runtime itself allocates at moments that depend on real time.
// If maps hashed them, the order of a map would differ too. So each address is given a number when it is first hashed,
// and maps hash the numbers. Two addresses may have the same number. But an address keeps its number until its object
// is freed, because every schedule must find the keys of a map that was made before the first schedule.

// coirAddress is an entry of the table: an address on the heap, and its number.
type coirAddress struct {
	addr   uintptr // 0: the entry is free; coirGone: its address was forgotten
	run    uint32  // the last schedule that hashed it
	number uint32
}

const coirGone = 1

// coirAddresses contains the addresses that were hashed and whose objects are alive.
//
//   - table is not on the heap, and does not keep objects alive. Its length is a power of two. An address is in the
//     entries from the one that its hash selects up to the next free one.
//   - taken is the number of entries that are not free, at most three quarters.
var coirAddresses struct {
	lock  mutex
	table []coirAddress
	taken int
	run   uint32 // the schedule that numbered is for
	// numbered counts the addresses that the schedule has hashed. It includes those that already had a number, so that the
	// next number does not depend on earlier schedules. others counts the addresses that were first hashed outside of
	// schedules.
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
	if spanOfHeap(addr) == nil { // a global, or on a stack; an address on a stack is only looked up, and is never a key
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

// coirPlaceOf returns the entry of an address, or a free entry for it.
func coirPlaceOf(addr uintptr) *coirAddress {
	t := coirAddresses.table
	for i := coirMix(uint64(addr)); ; i++ {
		if a := &t[i&uint64(len(t)-1)]; a.addr == addr || a.addr == 0 {
			return a
		}
	}
}

// coirGrowAddresses makes room for at least one more address.
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

// coirFreed reports whether the object at an address on the heap is about to be freed. It must be called when the
// collector has set all marks.
func coirFreed(addr uintptr) bool {
	span := spanOfHeap(addr)
	return span != nil && !span.markBitsForIndex(span.objIndex(addr)).isMarked()
}
