// Package wait holds those who wait: a node for each, and queues of nodes in the order of arrival.
//
// A node belongs to whoever waits and is used again for the next wait. That needs no second lock, by two rules: a node
// is linked and unlinked only under the lock of the thing that is waited for, and a waker copies what it needs of the
// node (the parker and the ticket) before it lets go of that lock. From then on it never looks at the node; the ticket
// makes a wake that comes too late harmless.
package wait

import "github.com/coir-go/coir/internal/park"

// Node is one wait, in one queue or in none.
type Node struct {
	prev, next *Node
	queue      *Queue
	Parker     *park.Parker
	Ticket     park.Ticket
}

// Queue is a FIFO of nodes. The zero value is empty. Its user's lock guards it.
type Queue struct {
	head, tail *Node
}

// Push puts the node last.
//
// Spec: PK-07
//
//go:norace
func (q *Queue) Push(n *Node, p *park.Parker, t park.Ticket) {
	n.Parker, n.Ticket = p, t
	n.queue, n.prev, n.next = q, q.tail, nil
	if q.tail == nil {
		q.head = n
	} else {
		q.tail.next = n
	}
	q.tail = n
}

// Remove takes the node out, if it is in the queue. A node that has been popped is not: Remove does nothing.
//
// Spec: PK-25
//
//go:norace
func (q *Queue) Remove(n *Node) {
	if n.queue != q {
		return
	}
	if n.prev == nil {
		q.head = n.next
	} else {
		n.prev.next = n.next
	}
	if n.next == nil {
		q.tail = n.prev
	} else {
		n.next.prev = n.prev
	}
	n.prev, n.next, n.queue, n.Parker = nil, nil, nil, nil // nodes live long, and would keep who waited last
}

// Pop takes the oldest out and returns whom to wake. A nil parker means that the queue is empty.
//
// Spec: PK-41
//
//go:norace
func (q *Queue) Pop() (*park.Parker, park.Ticket) {
	n := q.head
	if n == nil {
		return nil, 0
	}
	p, t := n.Parker, n.Ticket
	q.Remove(n)
	return p, t
}

// Empty reports whether nobody waits.
//
//go:norace
func (q *Queue) Empty() bool { return q.head == nil }
