// Package park decides which waker ends a wait.
//
// # The difficulty
//
// A peer, a close, a cancellation, a timer and a callback may all try to end a wait at the same time, while the waiter
// is still on its way to sleep. With separate words (a state, a pending flag, a ticket) the protocol has at least six
// faults, D1 to D6 in promela/word.pml: wakes are lost, a running fiber is resumed a second time, a stale waker ends
// the next wait, two wakers both believe that they delivered.
//
// # The road taken
//
// Each parker has one word and no other flag. The owner arms it by a store, because no waker changes the word of a wait
// that has ended. Every other change is one CAS.
//
//	 63                                    16 15           4 3     0
//	+----------------------------------------+--------------+-------+
//	|                 ticket                 |    reason    | state |
//	+----------------------------------------+--------------+-------+
//
//	          Arm                 Commit, after the switch, by the side that was resumed
//	RUNNING ------> PARKING(t) -------------------------------------------------------> PARKED(t)
//	   ^               |   |  Wake(t, r): won                                              | Wake(t, r): won
//	   |    Disarm     |   v                                                               v
//	   +---------------+  NOTIFIED(t, r): the committer readies it, once           RUNNABLE(t, r): readied, once
//
// ArmParked goes from RUNNING to PARKED(t) in one store, for a parker that no switch has to suspend first.
//
// A parker that has been resumed does not store RUNNING. Until the next Arm, its word keeps RUNNABLE or NOTIFIED, with
// a ticket that no later wait has. To a waker all three states mean that the wait has ended.
//
// # Invariants
//
//	one-winner   For each ticket at most one call wins: a Wake that returns Won, a Claim that returns Won or Asleep, or
//	             a ClaimParked that returns true.
//	one-ready    A parker is readied exactly once for each wait that it committed to, and never while it runs.
//	fresh-ticket Tickets grow, also if a pooled guest serves another goroutine; after 2^48 waits they begin at 1 again.
//	hands-off    After a Commit that returned true only the winner touches the parker.
//
// A waiter arms its parker, publishes (parker, ticket) where wakers will find it, and parks. After Arm it checks once
// more whether it must wait. A waker changes that condition before it looks at the word, so either the waker sees
// PARKING or the waiter sees the change.
//
// In race builds Wake is called with the caller's synchronisation hidden (internal/race). The operation that calls Wake
// tells the detector what it orders.
package park

import (
	_ "sync/atomic" // xatomic aliases its types; the compiler inlines their methods only with this import

	"github.com/coir-go/coir/internal/invariant"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/xatomic"
)

// Ticket names one wait of one parker.
type Ticket uint64

// Reason is how a wait ended. It is part of the word, so that it cannot be separated from its wake. If a wait is for
// several events, the upper bits are the index of the event that happened.
type Reason uint16

// The reasons for which a wait ends.
const (
	None      Reason = iota
	Data             // the awaited event has happened
	Closed           // the awaited event can no longer happen
	Cancelled        // the scope of the wait was cancelled
	TimedOut         // the wait's own deadline has passed
	Refused          // the operation did not wait, because an overflow policy made it fail
)

const kindBits = 3

// MaxIndex is the largest index that fits in a reason. Larger indexes are kept elsewhere.
const MaxIndex = 1<<(reasonBits-kindBits) - 1

// For returns the reason with the given index.
//
//go:norace
func (r Reason) For(index uint16) Reason { return r | Reason(index)<<kindBits }

// Kind returns the reason without its index.
//
//go:norace
func (r Reason) Kind() Reason { return r & (1<<kindBits - 1) }

// Index returns the index that For added.
//
//go:norace
func (r Reason) Index() int { return int(r >> kindBits) }

// State is the state in the word's low bits.
type State uint8

// The states. Names as in promela/word.pml.
const (
	Running State = iota
	Parking
	Parked
	Notified
	Runnable
)

func (s State) String() string {
	return [...]string{"RUNNING", "PARKING", "PARKED", "NOTIFIED", "RUNNABLE"}[s]
}

const (
	stateBits  = 4
	reasonBits = 12
	low        = stateBits + reasonBits
	ticketBits = 64 - low
	stateMask  = 1<<stateBits - 1
)

//go:norace
func word(t Ticket, r Reason, s State) uint64 {
	return uint64(t)<<low | uint64(r)<<stateBits | uint64(s)
}

//go:norace
func ticketOf(w uint64) Ticket { return Ticket(w >> low) }

//go:norace
func reasonOf(w uint64) Reason { return Reason(w >> stateBits & (1<<reasonBits - 1)) }

//go:norace
func stateOf(w uint64) State { return State(w & stateMask) }

// Place is the queue to which a readied parker is added: the queue of the waker's worker. It is opaque in this package.
// If a Place is nil, any queue will do.
type Place any

// Owner makes a woken parker run. The waker that ends the wait of a parked parker calls Ready, once. A wake that does
// not win calls Late.
type Owner interface {
	Ready(p *Parker, here Place)
	Late(p *Parker)
}

// Parker is the word and its owner. It must not be copied.
type Parker struct {
	word  xatomic.Uint64
	owner *Owner // a pointer, so that a parker is two words
}

// Init sets the parker's owner. It is called once, before first use.
//
//go:norace
func (p *Parker) Init(owner Owner) { p.owner = &owner }

// InitShared is like Init, for an owner that many parkers share. It does not allocate, and HasOwner recognises such
// parkers.
//
//go:norace
func (p *Parker) InitShared(owner *Owner) { p.owner = owner }

// HasOwner reports whether InitShared was called with this owner.
//
//go:norace
func (p *Parker) HasOwner(owner *Owner) bool { return p.owner == owner }

// Owner returns the parker's owner.
//
//go:norace
func (p *Parker) Owner() Owner { return *p.owner }

// Arm begins a wait. Only the owner calls it, while it runs.
//
//go:norace
func (p *Parker) Arm() Ticket {
	// Spec: PK-04 (only the running fiber arms its wait)
	// Spec: PK-05 (each arm takes a fresh ticket)
	// Spec: PK-06 (tickets only grow)
	return p.armAs(Parking)
}

// ArmParked is Arm and Commit in one, for a fiber that has never run, or for a goroutine, which blocks on its own
// stack. Such a wait cannot be disarmed.
//
//go:norace
func (p *Parker) ArmParked() Ticket {
	// Spec: PK-05 (each arm takes a fresh ticket)
	return p.armAs(Parked)
}

// armAs begins a wait in the state s.
//
//go:norace
func (p *Parker) armAs(s State) Ticket {
	w := p.word.Load()
	if invariant.Enabled {
		was := stateOf(w)
		invariant.Check(was != Parking && was != Parked, "armed while %v", was)
	}
	t := next(ticketOf(w))
	p.word.Store(word(t, None, s))
	return t
}

// next returns the ticket after t. The ticket after the largest one is 1, because no wait has ticket 0.
//
//go:norace
func next(t Ticket) Ticket {
	// Spec: PK-50 (tickets wrap to 1)
	if t == 1<<ticketBits-1 {
		return 1
	}
	return t + 1
}

// Disarm cancels an armed wait, if the owner has not switched away. It returns false if a waker has already ended the
// wait; p.Reason() is then the reason.
//
//go:norace
func (p *Parker) Disarm() bool {
	// Spec: PK-27 (a failed publication goes back to RUNNING)
	// Spec: PK-28 (an aborted wait is unpublished first)
	w := p.word.Load()
	t := ticketOf(w)
	return p.word.CompareAndSwap(word(t, None, Parking), word(t, None, Running))
}

// Commit puts an armed parker to sleep. The goroutine that runs in its place calls it once the parker's stack is quiet.
// If Commit returns false, a waker came first, and the caller must ready the parker. If Commit returns true, the caller
// must not touch the parker again.
//
//go:norace
func (p *Parker) Commit() bool {
	// Spec: PK-16 (PARKED is published after the switch)
	// Spec: PK-17 (commit fails only if the wait was notified)
	// Spec: PK-18 (commit and wake never enqueue twice)
	// Spec: PK-20 (after commit only the winner touches the frame)
	w := p.word.Load()
	if stateOf(w) != Parking {
		return false
	}
	t := ticketOf(w)
	return p.word.CompareAndSwap(word(t, None, Parking), word(t, None, Parked))
}

// Woken reports whether the last armed wait has ended.
//
//go:norace
func (p *Parker) Woken() bool {
	s := stateOf(p.word.Load())
	return s == Notified || s == Runnable
}

// Reason returns the reason for which the last wait ended. Only the owner calls it, once it is awake.
//
//go:norace
func (p *Parker) Reason() Reason {
	// Spec: PK-12 (the winner's reason carries kind and index)
	return reasonOf(p.word.Load())
}

// State returns a snapshot of the state, for display.
//
//go:norace
func (p *Parker) State() State { return stateOf(p.word.Load()) }

// Outcome is the result of a wake.
type Outcome uint8

// The outcomes of Wake, and of Claim.
const (
	Won    Outcome = iota // this wake ended the wait
	Asleep                // only from Claim: Won, and the winner must MakeReady the parker
	Lost                  // another wake had already ended the wait
	Stale                 // the parker is in a later wait
)

func (o Outcome) String() string { return [...]string{"won", "won asleep", "lost", "stale"}[o] }

// Wake tries to end the wait t for the given reason. Only the waker whose outcome is Won may act on it, for example
// hand over a value or count a timeout. If the parker was asleep, Wake readies it, at here unless here is nil.
//
//go:norace
func (p *Parker) Wake(t Ticket, r Reason, here Place) Outcome {
	// Spec: PK-08 (a stale wake changes nothing)
	// Spec: PK-09 (checking the ticket and changing the state is one step)
	// Spec: PK-10 (exactly one ends a wait)
	// Spec: PK-11 (a wake reports whether it won)
	// Spec: PK-13 (a wake of PARKING does not enqueue)
	// Spec: PK-15 (the winner of a PARKED wait enqueues it once)
	// Spec: PK-32 (a second wake reports lost)
	o := p.Claim(t, r)
	if o == Asleep {
		p.MakeReady(here)
		o = Won
	}
	return o
}

// MakeReady readies a parker that was claimed Asleep. Until then the parker sleeps, so the winner may unlock first. If
// p is nil, which stands for a parker that was not asleep, MakeReady does nothing.
//
//go:norace
func (p *Parker) MakeReady(here Place) {
	if p != nil {
		(*p.owner).Ready(p, here)
	}
}

// Claim is the first half of Wake: it decides whether this waker ends the wait t. It does not ready a parker that
// sleeps.
//
//go:norace
func (p *Parker) Claim(t Ticket, r Reason) Outcome {
	// Spec: PK-08 (a stale wake changes nothing)
	// Spec: PK-09 (checking the ticket and changing the state is one step)
	// Spec: PK-10 (exactly one ends a wait)
	// Spec: PK-11 (a wake reports whether it won)
	for {
		w := p.word.Load()
		if ticketOf(w) != t {
			(*p.owner).Late(p)
			return Stale
		}
		switch stateOf(w) {
		case Parking:
			if p.word.CompareAndSwap(w, word(t, r, Notified)) {
				return Won // the committer will find the parker NOTIFIED, and ready it
			}
		case Parked:
			if p.word.CompareAndSwap(w, word(t, r, Runnable)) {
				return Asleep
			}
		default:
			(*p.owner).Late(p)
			return Lost
		}
	}
}

// ClaimParked is Claim in one CAS, for a parker that has parked. If it returns true, the caller must ready the parker.
// It returns false if the parker has not parked or is in another wait; the caller then uses Claim.
//
//go:norace
func (p *Parker) ClaimParked(t Ticket, r Reason) bool {
	return p.word.CompareAndSwap(word(t, None, Parked), word(t, r, Runnable))
}

// Waiting returns the ticket of the wait that the parker is in, and whether it is in one. A canceller that does not
// know the ticket calls Waiting first. The ticket then ensures that it ends only that wait.
//
//go:norace
func (p *Parker) Waiting() (Ticket, bool) {
	w := p.word.Load()
	s := stateOf(w)
	return ticketOf(w), s == Parking || s == Parked
}

// Word is a parker's word. While it is unchanged, the parker is in the same wait.
type Word uint64

// Word returns the word, for a snapshot.
//
//go:norace
func (p *Parker) Word() Word { return Word(p.word.Load()) }

// Parked reports whether the parker has parked, and its wait has not ended.
//
//go:norace
func (w Word) Parked() bool { return stateOf(uint64(w)) == Parked }

// Ticket returns the ticket of the current wait, or of the last one.
//
//go:norace
func (w Word) Ticket() Ticket { return ticketOf(uint64(w)) }

// Expire ends the wait with the given ticket because its time is up. A timer calls it.
//
//go:norace
func (p *Parker) Expire(ticket uint64) {
	// Spec: TM-10 (a timeout is an ordinary claim)
	// Spec: TM-11 (a late timer changes nothing)
	race.Disable()
	p.Wake(Ticket(ticket), TimedOut, nil)
	race.Enable()
}
