package shm

import (
	"fmt"
	"sync/atomic"
	"unsafe"
)

// A link is two areas of shared memory, one for each side. Only its own side can write to an area; the other side has
// mapped it for reading. In its area a side has a ring of entries, which it pushes and the other side pops: the sender
// pushes the buffers that it sends, and the receiver pushes those that it returns.
//
// Nothing that the other side writes is trusted: each word is loaded once, atomically, and checked.
//
// A ring has room for all buffers of the link, and a buffer is in it at most once. So a push always finds room, and the
// reader need not publish its position: that is in its own memory.
//
// Waiting. A side that finds the other's ring empty, and is about to sleep, stores in its word until the tail for which
// it waits, then stores a new number in its word wait, and then checks the ring again. A side that has pushed an entry
// loads the other's word wait. If that has a number for which it has not yet sent a wake-up, and the tail has reached
// until, it sends one. Loads and stores of package atomic have one total order, so one of the two sides sees the other:
// no wake-up is lost, and there is at most one for each number. TestExploreWaking runs this code in all orders of its
// accesses.
//
// A wake-up is for all sleeping fibers and goroutines of a side, and an announcement is never withdrawn: a fiber that
// finds an entry in its second check cannot know whether another fiber sleeps and relies on the same announcement.
//
// A wake-up can cost more than passing a buffer of 64 KiB. So a sender without a free buffer waits until half of them
// have been returned. If the receiver has nothing left to receive, it wakes the sender early, when it returns a buffer
// and before it checks for the next one. A receiver that has something left, and does neither, may be waiting for the
// sender in another way: so after a short time the sender waits for only one buffer.
//
// Invariants, if the other side follows the protocol:
//
//	R1 room:  0 <= tail - popped <= number of buffers, for the tail of one side and popped of the other.
//	R2 entry: an entry below tail does not change before it has been popped.

// area is the part of a side's memory that precedes the buffers.
type area struct {
	tail    *atomic.Uint64 // the number of entries pushed so far
	wait    *atomic.Uint64 // the number of the last sleep that the side has announced, or 0
	until   *atomic.Uint64 // the tail of the other side's ring for which it sleeps
	closed  *atomic.Uint64 // 1 if the side has closed the link
	entries []entry
}

// entry names a part of a buffer.
type entry struct{ at, len atomic.Uint64 } // at: [offset 32][slot 32]

// part is an entry that has been read.
type part struct{ slot, off, len uint32 }

const (
	line     = 64 // a cache line: each word has its own, except until, which is stored together with wait
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

// ring is a side's view of both areas. The caller of each method holds a lock.
type ring struct {
	own, peer area
	count     int
	pushed    uint64 // the value of own.tail
	popped    uint64
	sleep     uint64 // the number of this side's last sleep
	woken     uint64 // the number of the other side's last sleep that a wake-up has ended
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

// sleeper reports whether the caller must wake the other side: it has announced a sleep, no wake-up was sent since
// then, and there are as many entries as it waits for, or early is set.
func (r *ring) sleeper(early bool) bool {
	w := r.peer.wait.Load()
	if w == 0 || w == r.woken || !early && int64(r.pushed-r.peer.until.Load()) < 0 {
		return false
	}
	r.woken = w
	return true
}

// pop returns the next entry of the other side. ok is false if there is none. The error says how the other side broke
// R1. pop does not check the entry itself.
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

// announce announces that this side is about to sleep until there are n entries, and reports whether it may sleep. If
// not, there is something to pop. The announcement is not withdrawn, because other sleepers of this side may rely on
// it, or on one that it replaced. If there are none, it causes one unnecessary wake-up.
func (r *ring) announce(n uint64) bool {
	r.sleep++
	r.own.until.Store(r.popped + n)
	r.own.wait.Store(r.sleep)
	return r.empty()
}
