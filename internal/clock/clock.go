// Package clock tells the time, and calls back when a deadline has passed.
//
// A wait with a deadline arms a [Timer] that it already owns: the node is embedded in the waiter, so arming does not
// allocate. The clock calls the timer's [Target] when the deadline has passed. There are two clocks: [Real] runs on the
// monotonic time of the process, [Virtual] on a number that a test or the simulator moves. Both use the wheel of
// wheel.go, which knows neither time nor locks. A virtual clock has one wheel, the real clock one for each processor.
//
// # What a clock promises
//
//   - Never early: Expire is called when Now() >= the deadline, not before.
//     Spec: TM-03 (no timer fires early)
//   - Nothing lost, nothing twice: each arming ends either in a Stop that returns true or in one Expire with the ticket
//     of that arming, and never in both.
//     Spec: TM-04 (no timer is lost)
//   - Order: Expire calls follow the deadlines, ties in the order of arming, over the whole life of the clock. On the
//     real clock the order of ties holds for timers of one shard (shard.go). A deadline that had already passed when
//     it was armed is treated as a deadline of about now: it fires at the next pass, after the timers that had been
//     taken for firing before it was armed.
//     Spec: TM-05 (timers fire in order)
//
// # The life of a Timer
//
//	          Arm                      taken by a pass (under the lock)
//	idle -----------> armed -------------------------------------------> idle, and (target, ticket) in the batch
//	 ^                  | Stop: true                                         | after the lock
//	 +------------------+                                                    v
//	                                                                   target.Expire(ticket)
//
// The node is idle again before Expire has run, so its owner may arm it again immediately. Then the Expire of the
// earlier arming can arrive during the later one: the ticket distinguishes them, and the owner ignores the stale one.
// Rejected: keeping the node busy until Expire has returned. Every owner would have to wait for the clock, although the
// ticket of the parking word makes a late Expire harmless.
//
// Spec: TM-11 (a late timer changes nothing)
//
// # Race builds
//
// In race builds coir hides its own synchronisation from the race detector (runtime.RaceDisable), so that the detector
// does not mistake an accidental order for one that the program relies on. That hides the mutex of the clock, but not
// the memory accesses under it, which would then be reported as races. So every function here carries the norace pragma
// (guarded by TestHiddenCodeIsNotSeen of internal/archtest), and none of them uses copy or a growing append, which are
// instrumented even there.
package clock

import (
	"sync/atomic"
	"unsafe"
)

// Target is notified when a timer has expired. Expire runs on the clock's own goroutine, outside its lock. It must not
// block, because the timers behind it wait. It may arm and stop timers, its own included.
type Target interface{ Expire(ticket uint64) }

// Clock is a source of time. Real and Virtual implement it.
type Clock interface {
	// Spec: TM-15 (time comes in through Clock alone)

	// Now returns the time in nanoseconds. It never goes back.
	// Spec: TM-01 (deadlines are monotonic times)
	Now() int64

	// Arm makes the clock call target.Expire(ticket) once Now() has reached when. The timer must not be armed; Arm
	// panics if it is. The clock holds the node until it is stopped or taken for firing.
	Arm(t *Timer, when int64, target Target, ticket uint64)

	// Stop stops the timer and reports whether it did. If it returns true, Expire is not called for this arming. If it
	// returns false, the timer was not armed or had been taken for firing: then Expire has run, runs or will run.
	Stop(t *Timer) bool
}

// Timer is an intrusive node: its owner embeds it and reuses it. The zero value is ready for use. It must not be copied
// or freed while it is armed. All fields except near belong to the clock, under the lock of the wheel that holds the
// timer.
type Timer struct {
	// Spec: TM-07 (a timed wait allocates no timer)

	next, prev *Timer
	when       int64
	ticket     uint64
	target     Target
	place      uint16 // 0: idle; otherwise 1 + the index of the slot that holds it
	near       uint16 // names the shard of a real clock; 0 if not chosen yet; changed only while the timer is idle
}

// Look returns when the timer is due, if it was last armed with ticket, or 0. It may be called while its owner waits
// for the timer.
//
//go:norace
func (t *Timer) Look(ticket uint64) int64 {
	if !wordSized { // 32-bit processors have no 64-bit loads for all addresses, but do not reorder loads
		if t.ticket != ticket {
			return 0
		}
		return t.when
	}
	if atomic.LoadUint64(&t.ticket) != ticket {
		return 0
	}
	return atomic.LoadInt64(&t.when)
}

// Forget makes Look return 0 until the timer is armed again. The timer must be idle. Call it before the timer gets
// another owner, whose tickets may be the same.
//
//go:norace
func (t *Timer) Forget() { t.ticket = 0 }

const wordSized = unsafe.Sizeof(uintptr(0)) == 8

// Near sets the number n of the worker that is about to arm the timer, which must be idle: see shard.go. A timer
// without a call of Near uses the same shard at every arming.
//
//go:norace
func (t *Timer) Near(n uint32) { t.near = uint16(n&0x7fff) + 1 }

// expiry is the part of a timer that is needed to fire it.
type expiry struct {
	when   int64
	target Target
	ticket uint64
}

// batchSize bounds how many timers are taken under one hold of a lock.
const batchSize = 128

// batch carries expiries from under a lock to the calls of Expire. It belongs to the one pass that runs, and is reused
// by the next.
type batch struct {
	at, n int // the index of the first expiry that has not been fired, and the end
	list  [batchSize]expiry
}

// fire calls Expire for the timers of the batch with deadlines up to limit, in order. It clears the entries that it has
// fired, so that they keep no target alive. The caller holds no lock.
//
//go:norace
func (b *batch) fire(limit int64) {
	for b.at < b.n {
		e := &b.list[b.at]
		if e.when > limit {
			return
		}
		target, ticket := e.target, e.ticket
		e.target = nil
		b.at++
		target.Expire(ticket)
	}
	b.at, b.n = 0, 0
}
