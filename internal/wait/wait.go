// Package wait holds those who wait: a node for each, and queues of nodes in the order of arrival.
//
// A node belongs to whoever waits and is used again for the next wait. That needs no second lock, by two rules:
//
//   - A node is linked and unlinked, and a cell's value touched, only under the lock of the thing that is waited for, until
//     the wait has been claimed.
//   - After a claim that won, the waker never looks at the node again. Whoever waited and was woken for another reason
//     takes the lock once more, to unlink its node, before it uses the node again.
//
// The ticket makes a wake that comes too late harmless.
package wait

import (
	"unsafe"

	"github.com/coir-go/coir/internal/park"
)

// Node is one wait, in one queue or in none.
type Node struct {
	prev, next *Node // next is also the chain of nodes that a Kit keeps for waits for many things
	Parker     *park.Parker
	Ticket     park.Ticket
	kind       Kind
	queued     bool
	Index      uint16 // which of the things that are waited for at once; MaxIndex: look for Won
	Won        bool   // it was this one. Used with MaxIndex alone
	large      bool   // too large to be kept
	Since      int64  // when the wait began, if somebody wants to know
}

// ClaimParked is Claim for a wait for one thing whose parker has parked, in one CAS. It returns the parker to ready, or
// nil if Claim has to find out. It leaves it to the waiter to clear Parker.
//
//go:norace
func (n *Node) ClaimParked(r park.Reason) *park.Parker {
	p := n.Parker
	if n.Index == park.MaxIndex || !p.ClaimParked(n.Ticket, r.For(n.Index)) {
		return nil
	}
	return p
}

// Claim tries to end the wait of a node that has been shifted out of its queue. Unless it lost, the waker must not
// touch the node again, and if the parker that it returns is not nil, must ready it.
//
//go:norace
func (n *Node) Claim(r park.Reason) (won bool, asleep *park.Parker) {
	// Spec: PK-41 (an old reference to a waiter node is harmless)
	// Spec: SE-02 (all cases claim through one word)
	p, t := n.Parker, n.Ticket
	n.Parker = nil // no one claims it again, won or lost; and nodes live long, and would keep who waited last
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

// Push puts the node last.
//
//go:norace
func (q *Queue) Push(n *Node, p *park.Parker, t park.Ticket) {
	// Spec: PK-07 (a waiter node carries word and ticket)
	n.Ticket, n.queued = t, true
	q.n++
	tail := q.tail
	n.Parker, q.tail = p, n
	if tail == nil { // a node that is in no queue has no links
		q.head = n
	} else {
		tail.next, n.prev = n, tail
	}
}

// Withdraw takes back a node that was pushed to this queue. If it has been shifted since, Withdraw does nothing.
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
	n.Parker = nil // nodes live long, and would keep who waited last
}

// Shift takes the oldest node out, or returns nil. The caller holds the lock, and claims the node before it unlocks.
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

// Empty reports whether no node is in the queue.
//
//go:norace
func (q *Queue) Empty() bool { return q.head == nil }

// First is the oldest node, or nil.
//
//go:norace
func (q *Queue) First() *Node { return q.head }

// Len is how many wait.
//
//go:norace
func (q *Queue) Len() int { return q.n }

// Cell is a node with a place for a value: what a receiver is handed, or what a sender has to give. It is in the heap, because
// nobody may write to another goroutine's stack.
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

// KindOf returns the Kind of cells with a T: the word by which an interface tells its type.
//
//go:norace
func KindOf[T any]() Kind {
	var t any = (*T)(nil)
	return *(*Kind)(unsafe.Pointer(&t))
}

// Kit is what a fiber or a goroutine waits with. It keeps the cells of earlier waits, by type, so that a wait allocates nothing
// once its kit has been used. Most waits need no more of it than last.
type Kit struct {
	last *Node // the cell that Peek or Event returned last, if it is still kept
	more *more // made on demand
}

// more is what a kit needs for a second kind of cells, and for waits for many things.
type more struct {
	turn    uint64
	scratch any
	bins    *bin
}

// bin keeps cells of one kind that are not in use.
type bin struct {
	kind Kind
	solo *Node // for a wait for one thing, unless it is the kit's last; apart from the chain, whose links a queue overwrites
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

// Turn is where a fair choice among cases goes on.
//
//go:norace
func (k *Kit) Turn() *uint64 { return &k.rest().turn }

// Scratch is what a wait for many things needs besides.
//
//go:norace
func (k *Kit) Scratch() *any { return &k.rest().scratch }

// Waits must not hold memory for ever: a kit keeps so many cells of one kind, and none whose value is larger.
const (
	keep     = 64
	keepSize = 1 << 10
)

// Peek returns a cell for a wait for one thing. It stays in the kit: a caller waits for one thing at a time.
//
//go:noinline
//go:norace
func Peek[T any](k *Kit, kind Kind) *Cell[T] {
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

// Event is Peek of a node alone, for a wait that hands nothing over.
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

// solo takes the cell of that kind for a wait for one thing out of its bin, if there is one. The kit's last goes into
// the bin of its own kind.
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

// Solo returns the cell that Peek returned last, if it is of that kind, or nil: Peek in short.
//
//go:norace
func (k *Kit) Solo(kind Kind) *Node {
	if n := k.last; n != nil && n.kind == kind {
		return n
	}
	return nil
}

// Done says that the wait for one thing has ended, and that the cell which Peek gave for it is clean. The kit lets go
// of a large one: a fiber that has waited once must not hold it for as long as it lives, nor its frame when it rests.
// For a small one this is nothing, and the compiler knows which it is.
//
// Guarded by TestKitKeepsNoLargeCell.
//
//go:norace
func Done[T any](k *Kit, kind Kind) {
	if unsafe.Sizeof(*new(T)) > keepSize {
		k.solo(kind)
	}
}

// Get takes a cell out of the kit, for a wait for many things. It goes back by Put.
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

// Put takes a cell back that is in no queue and whose value has been cleared.
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
