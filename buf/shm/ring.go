package shm

import (
	"fmt"
	"sync/atomic"
	"unsafe"
)

// A link is two areas of shared memory, one for each side. Only its own side can write an area; the other one has
// mapped it to read. In its area a side has a ring of entries, which it pushes and the other side pops: the sender the
// buffers that it sends, the receiver those that it returns.
//
// Nothing that the other side writes is trusted: it is loaded once, with one atomic load a word, and checked.
//
// A ring has room for all buffers of the link, and a buffer is in it at most once. So a push always finds room, and the
// reader need not say how far it has come: its position is in memory of its own.
//
// Waiting. A side that finds the other's ring empty, and is about to sleep, stores in its word until for which tail it
// waits, then a new number in its word wait, and then looks at the ring again. A side that has pushed looks at the
// other's word wait. If there is a number for which it has not yet sent a wake-up, and the tail has come to until, it
// sends one. Loads and stores of package atomic have one order, so one of the two sees the other: no wake-up is lost,
// and there is at most one for each number. TestExploreWaking runs this code through all orders of its accesses.
//
// A wake-up is for all fibers and goroutines of a side that sleep, and an announcement is never withdrawn: one that
// finds an entry in its second look cannot know whether the other side has seen the number by which another sleeps.
//
// A wake-up can cost more than a buffer of 64 KiB does. So a sender that has no buffer left waits until half of them
// have come back. The receiver wakes it early if it has nothing left to receive, when it returns a buffer and before it
// looks for the next one. A receiver that has something left, and does neither, may wait for the sender in another way:
// so after a short time the sender waits for one buffer.
//
// Invariants, if the other side keeps to the protocol:
//
//	R1 room:  0 <= tail - popped <= number of buffers, for the tail of the one side and popped of the other.
//	R2 entry: an entry below tail does not change before it has been popped.

// area is the part of a side's memory that is not buffers.
type area struct {
	tail    *atomic.Uint64 // the number of entries that were pushed
	wait    *atomic.Uint64 // the number of the last sleep that the side has announced, or 0
	until   *atomic.Uint64 // the tail of the other's ring for which it sleeps
	closed  *atomic.Uint64 // 1 if the side has ended in order
	entries []entry
}

// entry names a part of a buffer.
type entry struct{ at, len atomic.Uint64 } // at: [offset 32][slot 32]

// part is an entry that has been read.
type part struct{ slot, off, len uint32 }

const (
	line     = 64 // a cache line: each word has its own, but until, which is stored with wait
	ringAt   = 3 * line
	entryLen = int(unsafe.Sizeof(entry{}))
)

// places returns the number of entries for count buffers: a power of two.
func places(count int) int {
	n := 1
	for n < count {
		n *= 2
	}
	return n
}

// areaLen returns the number of bytes of an area for count buffers.
func areaLen(count int) int { return ringAt + places(count)*entryLen }

// areaIn returns the area at the beginning of mem, which has areaLen(count) bytes and is aligned to 8 bytes.
func areaIn(mem []byte, count int) area {
	_ = mem[areaLen(count)-1]
	word := func(at int) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&mem[at])) }
	return area{
		tail: word(0), wait: word(line), until: word(line + 8), closed: word(2 * line),
		entries: unsafe.Slice((*entry)(unsafe.Pointer(&mem[ringAt])), places(count)),
	}
}

// ring is a side's view of both areas. The caller has a lock for all methods.
type ring struct {
	own, peer area
	count     int
	pushed    uint64 // what own.tail is
	popped    uint64
	sleep     uint64 // the number of this side's last sleep
	woken     uint64 // the number of the other side's last sleep that was ended by a wake-up
}

// push adds an entry. It reports whether the other side must be woken: see sleeper.
func (r *ring) push(p part, early bool) (wake bool) {
	e := &r.own.entries[r.pushed&uint64(len(r.own.entries)-1)]
	e.at.Store(uint64(p.off)<<32 | uint64(p.slot))
	e.len.Store(uint64(p.len))
	r.pushed++
	r.own.tail.Store(r.pushed)
	return r.sleeper(early)
}

// sleeper reports whether the caller must wake the other side: it has announced a sleep, nobody has woken it since, and
// there are as many entries as it waits for, or early is set.
func (r *ring) sleeper(early bool) bool {
	w := r.peer.wait.Load()
	if w == 0 || w == r.woken || !early && int64(r.pushed-r.peer.until.Load()) < 0 {
		return false
	}
	r.woken = w
	return true
}

// pop returns the next entry of the other side. ok is false if there is none. The error says how the other side broke
// R1. Of the entry itself nothing is checked.
func (r *ring) pop() (p part, ok bool, err error) {
	tail := r.peer.tail.Load()
	if tail == r.popped {
		return part{}, false, nil
	}
	if n := tail - r.popped; n > uint64(r.count) {
		return part{}, false, fmt.Errorf("%w: its ring has %d entries for %d buffers", ErrProtocol, n, r.count)
	}
	e := &r.peer.entries[r.popped&uint64(len(r.peer.entries)-1)]
	at, length := e.at.Load(), e.len.Load()
	if length >= 1<<32 {
		return part{}, false, fmt.Errorf("%w: a buffer of %d bytes", ErrProtocol, length)
	}
	r.popped++
	return part{slot: uint32(at), off: uint32(at >> 32), len: uint32(length)}, true, nil
}

// empty reports whether pop would find nothing.
func (r *ring) empty() bool { return r.peer.tail.Load() == r.popped }

// announce says that this side is about to sleep until there are n entries, and reports whether it may: if not, there
// is something to pop. The announcement stands in either case: others of this side may sleep by it, or by one that it
// replaced. If nobody sleeps, it brings one wake-up for nothing.
func (r *ring) announce(n uint64) bool {
	r.sleep++
	r.own.until.Store(r.popped + n)
	r.own.wait.Store(r.sleep)
	return r.empty()
}
