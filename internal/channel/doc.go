// Package channel is a channel without its callers: what happens under the channel's lock.
//
// It knows values, cells and parkers. It knows no fiber, no context and no scheduler, and it readies no parker: an
// operation that ends a wait returns the parker, and its caller readies it after unlocking. Package coir has the rest:
// the typed methods that users call, how a caller waits, and the errors.
//
// # How an operation goes
//
// The caller locks the channel and tries the operation: Put or Take. Either it is done, or the channel is closed, or
// the caller must wait. To wait it arms its parker, publishes a cell with PublishSend or PublishRecv, unlocks and parks.
// The operation that completes the wait writes or reads the cell's value under the lock, and claims the wait through the
// parker's word, so that exactly one of data, close, cancel and timeout ends it. A wait that ended for another reason
// than data is withdrawn: Withdraw takes the cell out of its queue, under the lock, before the cell is used again.
//
// # Why a cancelled receive cannot lose a value
//
// A sender writes the value into the receiver's cell and then claims the receiver's wait, all under the lock. If the
// claim succeeds the receiver finds the value: a cancel that comes later loses, and changes nothing. If a cancel was
// first the claim fails; the sender takes the value back out of the cell, still under the lock, and goes on to the next
// receiver, the store, or its own wait. The cancelled receiver does not look into its cell. It may not use the cell
// again before it has withdrawn it, and for that it needs the lock. (TestValueOfALostClaimIsTakenBack, and
// TestExploreCloseAgainstSendRecvCancel for all orders.)
//
// # Invariants
//
// They hold whenever the lock is free, except for waits that have ended and are about to be withdrawn.
//
//	no-idle-sender    If there is room, no sender waits.
//	no-idle-receiver  If there is a value, no receiver waits.
//	one-side          Senders and receivers do not wait at the same time, except for the two sides of one select.
//	closed-no-wait    Once Close has returned no receiver waits; once Abort has returned no sender waits either.
package channel
