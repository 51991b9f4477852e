package desk

import (
	crand "crypto/rand"
	"math/rand/v2"
	"time"

	"github.com/coir-go/coir"
)

// A shard is a table of slots under one lock. A desk has one shard at first, and uses more when a caller finds a shard
// locked. So callers on many processors do not contend for one lock for long, and a program on one processor, or under
// package sim, always has its tickets in the same order.
//
// Invariants, under the lock:
//
//	S1 open:     a slot has a ticket if and only if the ticket is open, and the ticket's ID has the slot, its
//	             generation and its nonce.
//	S2 free:     a slot without a ticket is in the list of free slots, unless its generations are used up.
//	S3 memory:   a free slot is reused only after at least remembered others have been freed after it. Until then it
//	             keeps its last nonce and how its last ticket ended.
//	S4 group:    an open ticket is in the ring of its group, and a group with tickets watches their context.
//
// The free slots are a queue and not a stack because of S3: a duplicate or late completion can be distinguished from a
// forged one only while the slot remembers its last ticket. The queue costs a little locality; with 256 slots of 24
// bytes a shard stays in the first-level cache.
//
// The lock is a coir.Cond, used only as a lock, because package sim sees its operations and would not see those of a
// sync.Mutex.
type shard[T any] struct {
	lock   coir.Cond
	desk   *Desk[T]
	number int

	slots       []*[chunk]slot[T]
	times       []*[chunk]time.Time // when the ticket in each slot was opened, if the desk is listed
	used        uint32              // slots from here on have never had a ticket
	first, last uint32              // the queue of free slots, linked by next
	free        int

	current *group[T] // group of the last ticket; it may be empty
	kept    *kept[T]  // has the link of current
	spare   *group[T] // groups that can be reused, linked by next
	spares  int       // length of spare: at most chunk

	open, high int
	opened     uint64
	ended      [endings]uint64

	random *rand.ChaCha8
	_      [64]byte // keeps the next shard out of this cache line
}

const (
	chunk      = 256 // slots that are allocated at once
	remembered = 64  // free slots that are not yet reused
)

// slot is a place for an open ticket.
type slot[T any] struct {
	ticket     *Ticket[T] // nil if the slot is free
	nonce      uint64     // nonce of the ticket, or of the last one
	generation uint32     // its generation; 0 if there was no ticket
	next       uint32     // in a free slot: the next free slot and, in the upper bits, how the last ticket ended
}

// ending says how a ticket ended.
type ending uint8

const (
	resolved ending = iota
	rejected
	cancelled
	timedOut
	failed
	endings = iota
)

const nextBits = 24 // bits of slot.next for the slot

func newShard[T any](d *Desk[T], number int) *shard[T] {
	var seed [32]byte
	crand.Read(seed[:]) // never fails
	s := &shard[T]{desk: d, number: number, random: rand.NewChaCha8(seed)}
	s.kept = newKept(s)
	return s
}

func (s *shard[T]) at(i uint32) *slot[T] { return &s.slots[i/chunk][i%chunk] }

// put assigns a slot and an ID to a ticket of the group g. It returns false if there is no slot left. The caller holds
// the lock.
func (s *shard[T]) put(t *Ticket[T], g *group[T]) bool {
	// Spec: TK-05 (ids do not collide)
	// Spec: TK-15 (an old id never reaches a new ticket)
	var i uint32
	switch {
	case s.free > remembered || s.free > 0 && s.used == maxSlots:
		i = s.first
		s.first = s.at(i).next & (1<<nextBits - 1)
		s.free--
	case s.used == maxSlots:
		return false
	default:
		if i = s.used; int(i/chunk) == len(s.slots) {
			s.slots = append(s.slots, new([chunk]slot[T]))
		}
		s.used++
	}
	x := s.at(i)
	x.ticket = t
	x.nonce = s.random.Uint64()
	x.generation++
	g.add(t)
	t.id = ID{locate(s.desk.number, s.number, i, x.generation), x.nonce}
	s.opened++
	if s.desk.listed {
		s.stamp(i)
	}
	if s.open++; s.open > s.high {
		s.high = s.open
	}
	return true
}

// take removes the ticket from slot i, which must have one. The caller holds the lock.
func (s *shard[T]) take(i uint32, how ending) *Ticket[T] {
	// Spec: TK-04 (one completer takes a ticket out)
	x := s.at(i)
	t := x.ticket
	t.group.remove(t)
	x.ticket = nil
	x.next = uint32(how) << nextBits
	s.open--
	s.ended[how]++
	if x.generation == maxGeneration {
		return t
	}
	if s.free == 0 {
		s.first = i
	} else {
		last := s.at(s.last)
		last.next = last.next&^(1<<nextBits-1) | i
	}
	s.last = i
	s.free++
	return t
}

// find returns the slot of an ID whose ticket is open, or an error that says why there is none. The caller holds the
// lock.
func (s *shard[T]) find(id ID) (*slot[T], error) {
	i := id.slot()
	if i >= s.used {
		return nil, ErrUnknown
	}
	x := s.at(i)
	if x.generation != id.generation() || x.generation == 0 || !sameNonce(x.nonce, id.nonce) {
		return nil, ErrUnknown
	}
	if x.ticket != nil {
		return x, nil
	}
	switch ending(x.next >> nextBits) {
	case resolved, rejected:
		return nil, ErrDuplicate
	}
	return nil, ErrLate
}
