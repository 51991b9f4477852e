package wait

// How a waker claims the wait of a node that it has shifted, and tells the waiter which of many events happened.

import (
	"testing"

	"github.com/coir-go/coir/internal/park"
)

// sleeper is an owner that counts how often its parker was readied.
type sleeper struct {
	park.Parker
	readied int
}

func newSleeper() *sleeper {
	s := new(sleeper)
	s.Init(s)
	return s
}

func (s *sleeper) Ready(*park.Parker, park.Place) { s.readied++ }

func (s *sleeper) Late(*park.Parker) {}

// indexes are some indexes that fit in the word, and the last, which stands for all that do not fit.
var indexes = []uint16{0, 1, 255, 256, park.MaxIndex - 1, park.MaxIndex}

// A wait that is claimed on its way to sleep need not be readied. If the waiter sleeps, the claimer must ready it. The
// reason has the kind and the index, and a node whose index does not fit is marked.
//
// Spec: PK-12 (the winner's reason carries kind and index)
func TestClaimTellsWhichItWas(t *testing.T) {
	for _, index := range indexes {
		for _, asleep := range []bool{false, true} {
			s := newSleeper()
			var q Queue
			n := Node{Index: index}
			q.Push(&n, &s.Parker, s.Arm())
			if asleep {
				s.Commit()
			}
			won, p := q.Shift().Claim(park.Closed)
			if !won || (p != nil) != asleep || p != nil && p != &s.Parker {
				t.Fatalf("index %d, asleep %v: won %v, to ready %p", index, asleep, won, p)
			}
			if s.readied != 0 {
				t.Fatal("readied too early")
			}
			if r := s.Reason(); r.Kind() != park.Closed || r.Index() != int(index) {
				t.Fatalf("claimed for %d with index %d, the word has %d with %d", park.Closed, index, r.Kind(), r.Index())
			}
			if n.Won != (index == park.MaxIndex) {
				t.Fatalf("index %d: the node is marked: %v", index, n.Won)
			}
		}
	}
}

// A late claim, for the same wait or for an earlier one, changes nothing and leaves no mark.
//
// Spec: PK-08 (a stale wake changes nothing)
// Spec: PK-41 (an old reference to a waiter node is harmless)
// Spec: SE-02 (all cases claim through one word)
func TestClaimThatLostLeavesNoMark(t *testing.T) {
	for _, index := range indexes {
		s := newSleeper()
		var q Queue
		first, second := Node{Index: index}, Node{Index: index}
		ticket := s.Arm()
		q.Push(&first, &s.Parker, ticket)
		q.Push(&second, &s.Parker, ticket)
		s.Commit()
		if won, _ := q.Shift().Claim(park.Data); !won {
			t.Fatal("the first claim has lost")
		}
		reason := s.Reason()
		late := q.Shift()
		if won, p := late.Claim(park.Closed); won || p != nil || late.Won || s.Reason() != reason {
			t.Fatalf("index %d: a second claim of the same wait: won %v, to ready %p, marked %v", index, won, p, late.Won)
		}
		late.Parker = &s.Parker // as if it had been shifted for the earlier wait, and is claimed only now
		s.Arm()                 // the next wait
		if won, p := late.Claim(park.Closed); won || p != nil || late.Won || s.State() != park.Parking {
			t.Fatalf("index %d: a claim of a wait that is over: won %v, to ready %p, marked %v", index, won, p, late.Won)
		}
	}
}

// TestManyNodesOneWinner: of the nodes that one wait is registered with, the first claimed wins, and only it is marked.
//
// Spec: PK-10 (exactly one ends a wait)
// Spec: PK-47 (a fiber is armed for one ticket at a time)
// Spec: SE-02 (all cases claim through one word)
func TestManyNodesOneWinner(t *testing.T) {
	const n = 5
	for first := range n {
		s := newSleeper()
		queues, nodes := make([]Queue, n), make([]Node, n)
		ticket := s.Arm()
		for i := range nodes {
			nodes[i].Index = park.MaxIndex
			queues[i].Push(&nodes[i], &s.Parker, ticket)
		}
		s.Commit()
		for i := range n {
			at := (first + i) % n
			if won, _ := queues[at].Shift().Claim(park.Data); won != (i == 0) {
				t.Fatalf("claim %d has won: %v", i, won)
			}
		}
		for i := range nodes {
			if nodes[i].Won != (i == first) {
				t.Errorf("%d was claimed first; node %d is marked: %v", first, i, nodes[i].Won)
			}
		}
	}
}
