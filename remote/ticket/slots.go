package ticket

import (
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/desk"
)

// slots is the table of the tickets of a desk: of the open tickets, and of ended tickets whose tokens may still be
// used. It decides which answer completes a ticket, and recognizes duplicates of that answer.
//
//	        open          claim           end, with an answer
//	(free) ------> open --------> claimed --------------------> answered
//	                 |               |
//	                 +---------------+------ end, without ----> ended
//
// An answer claims a ticket, and then completes it at the desk. The lock is not held meanwhile, because functions of
// the program run there. The desk calls end. It also calls end if at the same moment the ticket's time or context has
// ended, or the ticket was cancelled: then the answer was too late. Between the claim and the end, a second answer with
// the same key must be sent again, because the outcome of the first is not known yet.
//
// Invariants, under the lock:
//
//	S1 once:   a ticket is claimed at most once.
//	S2 memory: a slot whose ticket has ended is in the list of free slots. It is used again when its tokens have
//	           expired, or when as many as remembered other slots have been freed after it. Until then it keeps the key
//	           and the outcome.
//	S3 number: a slot has each generation once. A slot that has had all generations is not used again.
type slots struct {
	lock        coir.Cond // only its lock is used: package sim sees it
	chunks      []*[chunk]slot
	used        uint32 // slots below this have had a ticket
	first, last uint32 // the list of free slots, linked by next
	free        int
}

const (
	chunk      = 1024    // slots allocated together
	remembered = 1 << 16 // free slots to keep until their tokens have expired
)

// state is the state of the ticket of a slot.
type state byte

const (
	open state = iota
	claimed
	answered
	ended
)

// keyHash identifies an idempotency key.
type keyHash [16]byte

type slot struct {
	id         desk.ID // of an open ticket
	key        keyHash // of a claimed or answered ticket
	expiry     int64   // in seconds
	generation uint32
	next       uint32
	state      state
}

func (s *slots) at(i uint32) *slot {
	if i >= s.used {
		return nil
	}
	return &s.chunks[i/chunk][i%chunk]
}

// open gives a slot to a ticket.
func (s *slots) open(id desk.ID, expiry, now time.Time) (i, generation uint32) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.free > 0 && (s.free > remembered || s.at(s.first).expiry <= now.Unix()) {
		i = s.first
		s.first = s.at(i).next
		s.free--
	} else {
		if i = s.used; int(i/chunk) == len(s.chunks) {
			s.chunks = append(s.chunks, new([chunk]slot))
		}
		s.used++
	}
	x := s.at(i)
	*x = slot{id: id, expiry: expiry.Unix(), generation: x.generation + 1}
	return i, x.generation
}

// claim is the outcome of an attempt to claim a ticket.
type claim byte

const (
	won       claim = iota // the caller completes the ticket
	pending                // another answer with the same key is about to complete it
	duplicate              // another answer with the same key has completed it
	gone                   // the ticket has ended in another way, or is unknown
)

// claim claims a ticket for an answer. If the claim has won, id is the ID of the ticket at the desk.
func (s *slots) claim(i, generation uint32, key keyHash) (id desk.ID, c claim) {
	s.lock.Lock()
	defer s.lock.Unlock()
	x := s.at(i)
	switch {
	case x == nil || x.generation != generation || x.state == ended:
		return id, gone
	case x.state == open:
		x.state, x.key = claimed, key
		return x.id, won
	case x.key != key:
		return id, gone
	case x.state == claimed:
		return id, pending
	}
	return id, duplicate
}

// end records that a ticket has ended, and whether an answer ended it.
func (s *slots) end(i, generation uint32, byAnswer bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	x := s.at(i)
	x.state = ended
	if byAnswer {
		x.state = answered
	}
	x.id = desk.ID{}
	if generation == 1<<32-1 {
		return
	}
	if s.free == 0 {
		s.first = i
	} else {
		s.at(s.last).next = i
	}
	s.last = i
	s.free++
}
