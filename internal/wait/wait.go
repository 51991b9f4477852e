// Package wait implements queues of waiters: a node for each wait, in the order of arrival.
//
// A node belongs to the waiter, which reuses it for its next wait. Two rules make this safe without a second lock:
//
//   - Until the wait has been claimed, a node is linked and unlinked, and a cell's value read and written, only under
//     the lock of the object that is waited for.
//   - A waker that has won a claim never looks at the node again, unless the waiter is asleep: until it is readied, the
//     node is the waker's, which may push it into a queue of those to ready. A waiter that was woken for any reason but
//     data takes the lock once more, to unlink its node, before it reuses the node.
//
// The ticket makes a late wake harmless.
package wait

import (
	"math/bits"
	"math/rand/v2"
	"unsafe"

	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/xatomic"
)

// Node is one wait, in at most one queue.
type Node struct {
	prev, next *Node // next also links the free nodes of a Kit
	Parker     *park.Parker
	Ticket     park.Ticket
	kind       Kind
	queued     bool
	Index      uint16 // the event's index in the wait; if it is MaxIndex, see Won
	Won        bool   // this event ended the wait; used only if Index is MaxIndex
	large      bool   // too large for a kit to keep
	Since      int64  // when the wait began, on a timed channel
}

// ClaimParked is Claim in one CAS. It works only if the node's parker has parked and the node's Index is below
// MaxIndex. It returns the parker, which the caller must ready, or nil if the caller must use Claim instead. The
// waiter, not ClaimParked, clears the field Parker.
//
//go:norace
func (n *Node) ClaimParked(r park.Reason) *park.Parker {
	p := n.Parker
	if n.Index == park.MaxIndex || !p.ClaimParked(n.Ticket, r.For(n.Index)) {
		return nil
	}
	return p
}

// Claim tries to end the wait of a node that has been shifted out of its queue. If won is true, the waker must not
// touch the node again, unless asleep is not nil: then the waker must ready asleep, and the node is its own until then.
//
//go:norace
func (n *Node) Claim(r park.Reason) (won bool, asleep *park.Parker) {
	// Spec: PK-41 (an old reference to a waiter node is harmless)
	// Spec: SE-02 (all cases claim through one word)
	p, t := n.Parker, n.Ticket
	n.Parker = nil // a kit may keep the node for long, and must not keep its last waiter alive
	long := n.Index == park.MaxIndex
	if long {
		n.Won = true
	}
	switch p.Claim(t, r.For(n.Index)) {
	case park.Won:
		return true, nil
	case park.Asleep:
		return true, p
	}
	if long {
		n.Won = false
	}
	return false, nil
}

// Next returns the node that was pushed after n, or nil. The caller holds the lock.
//
//go:norace
func (n *Node) Next() *Node { return n.next }

// Is reports whether the node is part of a cell of that kind.
//
//go:norace
func (n *Node) Is(kind Kind) bool { return n.kind == kind }

// Large reports whether the node is part of a cell that a kit does not keep.
//
//go:norace
func (n *Node) Large() bool { return n.large }

// Queue is a FIFO of nodes. The zero value is empty. Its user's lock guards it.
type Queue struct {
	head, tail *Node
	n          int
}

// Push appends the node.
//
//go:norace
func (q *Queue) Push(n *Node, p *park.Parker, t park.Ticket) {
	// Spec: PK-07 (a waiter node carries word and ticket)
	n.Ticket, n.queued = t, true
	q.n++
	tail := q.tail
	n.Parker, q.tail = p, n
	if tail == nil { // n is in no queue, so its links are nil
		q.head = n
	} else {
		tail.next, n.prev = n, tail
	}
}

// Withdraw removes a node that was pushed to this queue. If the node has been shifted since, Withdraw does nothing.
//
//go:norace
func (q *Queue) Withdraw(n *Node) {
	// Spec: PK-25 (unpublishing is idempotent)
	switch {
	case !n.queued:
	case n == q.head:
		q.Shift()
	default:
		n.prev.next = n.next
		if n.next == nil {
			q.tail = n.prev
		} else {
			n.next.prev = n.prev
		}
		n.prev, n.next, n.queued = nil, nil, false
		q.n--
	}
	n.Parker = nil // a kit may keep the node for long, and must not keep its last waiter alive
}

// Shift removes and returns the oldest node, or returns nil. The caller holds the lock, and claims the node before it
// unlocks.
//
//go:norace
func (q *Queue) Shift() *Node {
	n := q.head
	if n != nil {
		next := n.next
		q.head = next
		if next == nil {
			q.tail = nil
		} else {
			next.prev, n.next = nil, nil
		}
		n.queued = false
		q.n--
	}
	return n
}

// Empty reports whether the queue has no node.
//
//go:norace
func (q *Queue) Empty() bool { return q.head == nil }

// First returns the oldest node, or nil.
//
//go:norace
func (q *Queue) First() *Node { return q.head }

// Len returns the number of nodes.
//
//go:norace
func (q *Queue) Len() int { return q.n }

// Ring is a FIFO of nodes that takes one word, for objects for which waits are rare. The zero value is empty. Its
// user's lock guards it.
type Ring struct {
	head *Node // head.prev is the last node, and its next is head
}

// Push puts the node last.
//
//go:norace
func (r *Ring) Push(n *Node, p *park.Parker, t park.Ticket) {
	n.Parker, n.Ticket, n.queued = p, t, true
	head := r.head
	if head == nil {
		n.prev, n.next, r.head = n, n, n
		return
	}
	n.prev, n.next = head.prev, head
	n.prev.next, head.prev = n, n
}

// Withdraw removes a node that was pushed to this ring. If the node has been shifted since, Withdraw does nothing.
//
//go:norace
func (r *Ring) Withdraw(n *Node) {
	// Spec: PK-25 (unpublishing is idempotent)
	if n.queued {
		r.remove(n)
	}
	n.Parker = nil
}

// Shift removes and returns the oldest node, or returns nil. The caller holds the lock, and claims the node before it
// unlocks.
//
//go:norace
func (r *Ring) Shift() *Node {
	n := r.head
	if n != nil {
		r.remove(n)
	}
	return n
}

//go:norace
func (r *Ring) remove(n *Node) {
	switch {
	case n.next == n:
		r.head = nil
	case n == r.head:
		r.head = n.next
		fallthrough
	default:
		n.prev.next, n.next.prev = n.next, n.prev
	}
	n.prev, n.next, n.queued = nil, nil, false
}

// Empty reports whether the ring has no node.
//
//go:norace
func (r *Ring) Empty() bool { return r.head == nil }

// Cell is a node with room for the value that a sender sends or a receiver receives. It is in the heap, because a
// goroutine must not write to the stack of another.
type Cell[T any] struct {
	Node
	Value T
}

// CellOf returns the cell that a node is part of.
//
//go:norace
func CellOf[T any](n *Node) *Cell[T] { return (*Cell[T])(unsafe.Pointer(n)) }

// Kind names the type of a cell's value.
type Kind unsafe.Pointer

// KindOf returns the Kind of cells with a T: the type word of an interface.
//
//go:norace
func KindOf[T any]() Kind {
	var t any = (*T)(nil)
	return *(*Kind)(unsafe.Pointer(&t))
}

// Kit holds the cells that a fiber or a goroutine waits with. It keeps the cells of earlier waits, by type, so that
// later waits allocate nothing. Most waits need only last.
type Kit struct {
	last *Node // the cell that SoloCell or Event returned last, if it is still kept
	more *more // made on demand
	On   any   // what the fiber waits for, while it waits: a subject of package coir, read by snapshots
}

// more holds what a kit needs only for a second kind of cell, or for waits for many events.
type more struct {
	turn    uint64 // state of the generator; 0 before the first choice
	scratch any
	bins    *bin
}

// bin keeps the unused cells of one kind.
type bin struct {
	kind Kind
	solo *Node // for waits for one event; nil while it is Kit.last. It is not in free, because queues overwrite its links
	free *Node
	n    int
	next *bin
}

//go:norace
func (k *Kit) rest() *more {
	if k.more == nil {
		k.more = new(more)
	}
	return k.more
}

// Turn returns a random number below n, for a fair choice among cases. The generator is wyrand. It is not enough that
// the numbers are evenly distributed, as in a sequence of steps of the golden ratio: the program's next step depends on
// the choice, so a program could fall into step with such a sequence, and never choose some case.
//
// Guarded by TestSelectIsFairWhateverFollows.
//
//go:norace
func (k *Kit) Turn(n int) uint64 {
	turn := &k.rest().turn
	switch {
	case xatomic.Instrumented:
		*turn = 1 // an exploration must be repeatable
	case *turn == 0:
		*turn = rand.Uint64() // kits that choose only once must not all make the same choice
	}
	*turn += 0xa0761d6478bd642f
	hi, lo := bits.Mul64(*turn, *turn^0xe7037ed1a0b428db)
	at, _ := bits.Mul64(hi^lo, uint64(n))
	return at
}

// Scratch returns memory that a wait for many events may use.
//
//go:norace
func (k *Kit) Scratch() *any { return &k.rest().scratch }

// Limits on the memory that a kit keeps: the number of cells of one kind, and the size of a value.
const (
	keep     = 64
	keepSize = 1 << 10
)

// SoloCell returns the kit's cell for a wait for one event, and creates it if there is none. The cell stays in the kit,
// because a caller is in at most one such wait at a time.
//
//go:noinline
//go:norace
func SoloCell[T any](k *Kit, kind Kind) *Cell[T] {
	if n := k.Solo(kind); n != nil {
		return CellOf[T](n)
	}
	n := k.solo(kind)
	if n == nil {
		n = &newCell[T](kind).Node
	}
	k.last = n
	return CellOf[T](n)
}

// Event is like SoloCell, for a wait that passes no value. It returns a node that is not part of a cell.
//
//go:norace
func (k *Kit) Event() *Node {
	if n := k.last; n != nil && n.kind == nil {
		return n
	}
	return k.event()
}

//go:noinline
//go:norace
func (k *Kit) event() *Node {
	n := k.solo(nil)
	if n == nil {
		n = new(Node)
	}
	k.last = n
	return n
}

// solo takes the cell for a wait for one event out of the bin of that kind, if there is one. It puts the kit's last
// cell into the bin of its own kind.
//
//go:norace
func (k *Kit) solo(kind Kind) *Node {
	if n := k.last; n != nil {
		k.bin(n.kind).solo = n
		k.last = nil
	}
	if k.more == nil {
		return nil
	}
	for b := k.more.bins; b != nil; b = b.next {
		if b.kind == kind {
			n := b.solo
			b.solo = nil
			return n
		}
	}
	return nil
}

// Solo is the fast path of SoloCell. It returns the node of the cell that SoloCell returned last, if that cell is of
// the given kind, and otherwise nil.
//
//go:norace
func (k *Kit) Solo(kind Kind) *Node {
	if n := k.last; n != nil && n.kind == kind {
		return n
	}
	return nil
}

// Done tells the kit that a wait for one event has ended and that the cell from SoloCell is clean. The kit drops a
// large cell, so that neither a fiber that has waited once nor its idle frame keeps it. For a small cell Done does
// nothing. The size is a constant, so the compiler drops the code that is not needed.
//
// Guarded by TestKitKeepsNoLargeCell.
//
//go:norace
func Done[T any](k *Kit, kind Kind) {
	if unsafe.Sizeof(*new(T)) > keepSize {
		k.solo(kind)
	}
}

// Get takes a cell out of the kit, for a wait for many events. Put returns it.
//
//go:norace
func Get[T any](k *Kit, kind Kind) *Cell[T] {
	if n := k.get(kind); n != nil {
		return CellOf[T](n)
	}
	return newCell[T](kind)
}

//go:norace
func (k *Kit) get(kind Kind) *Node {
	if k.more == nil {
		return nil
	}
	for b := k.more.bins; b != nil; b = b.next {
		if b.kind == kind && b.free != nil {
			n := b.free
			b.free, n.next = n.next, nil
			b.n--
			return n
		}
	}
	return nil
}

//go:noinline
//go:norace
func newCell[T any](kind Kind) *Cell[T] {
	c := new(Cell[T])
	c.kind = kind
	c.large = unsafe.Sizeof(c.Value) > keepSize
	return c
}

// Put returns a cell to the kit. The cell must be in no queue, and its value cleared.
//
//go:norace
func (k *Kit) Put(n *Node) {
	n.Index, n.Won, n.Parker = 0, false, nil
	b := k.bin(n.kind)
	if b.n < keep && !n.large {
		n.next, b.free = b.free, n
		b.n++
	}
}

//go:norace
func (k *Kit) bin(kind Kind) *bin {
	m := k.rest()
	for b := m.bins; b != nil; b = b.next {
		if b.kind == kind {
			return b
		}
	}
	m.bins = &bin{kind: kind, next: m.bins}
	return m.bins
}
