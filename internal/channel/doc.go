// Package channel implements what happens under a channel's lock.
//
// It deals with values, cells and parkers. It does not know fibers, contexts or the scheduler. It readies no parker: an
// operation that ends a wait returns the parker, and the caller of the operation readies the parker after unlocking.
// Package coir has the typed methods that users call, the waiting, and the errors.
//
// # How an operation works
//
// The caller locks the channel and tries the operation: Put or Take. Either the operation is done, or the channel is
// closed, or the caller must wait. To wait, the caller arms its parker, publishes a cell with PublishSend or
// PublishRecv (or Publish, on a plain channel), unlocks and parks. The operation that completes the wait writes or
// reads the cell's value under the lock, and claims the wait through the parker's word, so that exactly one of data,
// close, cancel and timeout ends the wait. Then the caller calls Finish. If anything but data ended the wait, Finish
// takes the cell out of its queue, under the lock, before the cell is used again.
//
// # Why a cancelled receive cannot lose a value
//
// A sender writes the value into the receiver's cell and then claims the receiver's wait, all under the lock. If the
// claim succeeds, the receiver finds the value: a later cancellation loses and changes nothing. If a cancellation came
// first, the claim fails, and the sender still has its value. It counts the send as done only if it won the claim;
// otherwise it offers the value to the next receiver or to the store, or waits with it. The cancelled receiver does not
// read its cell, and cannot reuse it before it has withdrawn it, for which it needs the lock. The sender also clears
// the cell, but only so that the cell does not keep the value alive. (TestLostClaimTakesItsValueBack, and
// TestExploreCloseAgainstSendRecvCancel for all orders.)
//
// # Invariants
//
// They hold whenever the lock is free. A wait that has ended but has not been withdrawn yet does not count as a wait.
//
//	no-idle-sender    If there is room, no sender waits.
//	no-idle-receiver  If there is a value, no receiver waits.
//	one-side          Senders and receivers do not wait at the same time, except for the two sides of one select.
//	closed-no-wait    Once Close has returned no receiver waits; once Abort has returned no sender waits either.
package channel
