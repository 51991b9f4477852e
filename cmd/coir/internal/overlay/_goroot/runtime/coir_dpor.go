package runtime

import (
	"internal/coir"
	"internal/search"
	"unsafe"
)

// This file is the model of search.DPOR: which operations of goroutines conflict.
//
// They conflict on the same object: a channel, a lock, a WaitGroup, a Cond, a Once, an atomic. A select conflicts with
// operations on its channels, and while a goroutine waits in a select any two operations on channels do, because it
// ends with the first of its cases. Any two operations on sockets in memory conflict. This does not see other effects
// between goroutines, such as through shared memory, the length of a channel, a sync.Pool or a timer that both stop. A
// program without data races shares memory under a lock, or by atomics.

// coirTransition is the next transition of a goroutine.
type coirTransition struct {
	op      uint8
	resumed bool // what follows a wait in that operation, or begins a goroutine
	watched bool // a goroutine waits in a select meanwhile
	clock   bool // not a goroutine: all wait, and time moves
	obj     uint32
	first   int32 // of a select, its channels in coirChosen
	n       int32
}

// coirEvent is a transition that has happened.
type coirEvent struct {
	t     coirTransition
	actor int32
	fork  int32 // the decision that led to it; -1: there was none
	wake  int32 // the event that made it possible; -1: none
}

// coirLog has the events of a schedule, for search.DPOR.
//
//   - If logging, event i is coirEvents[i], for i < coirMaxEvents. Those beyond are counted: the schedule is too long.
//   - If logging, selecting is the number of goroutines whose coirG.selecting is set.
type coirLog struct {
	logging   bool
	nevents   int
	nchosen   int // of coirChosen
	selecting int // goroutines that wait in a select, or did and have not continued
}

var coirEvents [coirMaxEvents]coirEvent

// coirChosen has the channels of selects. It is not a ring: a schedule that has more is too long.
var coirChosen [1 << 16]uint32

// coirSelectPoint is the point before a select.
func coirSelectPoint(cases *scase, n int) {
	s := &coirSched
	gp := getg()
	first := s.nchosen
	if s.logging && coirActs(gp) {
		for _, c := range unsafe.Slice(cases, n) {
			if c.c != nil && s.nchosen < len(coirChosen) {
				coirChosen[s.nchosen] = coirChannel(c.c)
				s.nchosen++
			}
		}
		gp.coir.next.first, gp.coir.next.n = int32(first), int32(s.nchosen-first)
	}
	coirPoint(coir.OpSelect, nil)
}

// coirGoesOn records that a goroutine performs the operation that it has announced, or continues after a wait.
func coirGoesOn(gp *g) {
	s := &coirSched
	gp.coir.moves++
	if !s.logging || gp.coir.id == 0 {
		return
	}
	if gp.coir.selecting {
		gp.coir.selecting = false
		s.selecting--
	}
	e := coirEvent{t: coirNextOf(gp), actor: int32(gp.coir.id), fork: s.chose, wake: -1}
	if e.t.resumed {
		e.wake = gp.coir.woken
	}
	s.chose = -1
	gp.coir.pending = false
	s.happens(e)
}

func coirNextOf(gp *g) coirTransition {
	t := gp.coir.next
	t.resumed, t.watched = !gp.coir.pending, coirSched.selecting > 0
	return t
}

// happens adds an event.
func (l *coirLog) happens(e coirEvent) {
	if l.logging && l.nevents < len(coirEvents) {
		coirEvents[l.nevents] = e
	}
	l.nevents++
}

// coirModel implements search.Model.
type coirModel struct{}

var coirSearch search.DPOR[coirTransition]

//go:linkname coirDPOR testing.coirDPOR
func coirDPOR() search.Strategy {
	coirSearch.Model = coirModel{}
	return &coirSearch
}

func (coirModel) Way(_ *search.Fork, k int) coirTransition {
	s := &coirSched
	return coirNextOf(s.way(s.holder.ptr(), s.kind, k))
}

func (coirModel) Learned() bool { return false }

func (coirModel) Events(events []search.Event[coirTransition], end int) []search.Event[coirTransition] {
	n := coirSched.nevents
	if end >= 0 {
		n = end
	}
	if n > len(coirEvents) || coirSched.nchosen == len(coirChosen) {
		return make([]search.Event[coirTransition], len(coirEvents)) // too long
	}
	for i := range coirEvents[:n] {
		e := &coirEvents[i]
		events = append(events, search.Event[coirTransition]{
			Actor: e.actor, T: e.t, Fork: e.fork, Wake: e.wake, Idle: e.t.clock,
		})
	}
	return events
}

// Awaited: the end of a Wait comes after each Done, which among themselves commute.
func (coirModel) Awaited(events []search.Event[coirTransition], i, j int) bool {
	d, e := &events[j].T, &events[i].T
	return e.op == coir.OpWait && e.resumed && d.op == coir.OpDone && d.obj == e.obj
}

func (coirModel) Conflict(a, b coirTransition) bool {
	if a.clock || b.clock {
		return true
	}
	if coir.OnNetwork(int(a.op)) && coir.OnNetwork(int(b.op)) {
		return true // an operation on a socket may be on several objects: both ends, a port, the listener
	}
	x, y := coirClassOf(&a), coirClassOf(&b)
	if x == coirPrivate || y == coirPrivate {
		return false
	}
	if x == coirOnChannel && y == coirOnChannel && a.watched && b.watched {
		return true
	}
	if a.op == coir.OpSelect && b.op == coir.OpSelect {
		for i := a.first; i < a.first+a.n; i++ {
			if coirUses(&b, coirChosen[i]) {
				return true
			}
		}
		return false
	}
	if a.op == coir.OpSelect {
		return coirUses(&a, b.obj)
	}
	return coirUses(&b, a.obj) && !coirCommute(&a, &b)
}

const (
	coirPrivate = iota // with nothing but the clock
	coirOnChannel
	coirOnObject
)

func coirClassOf(t *coirTransition) int {
	switch t.op {
	case coir.OpNone, coir.OpGo, coir.OpYield:
		return coirPrivate
	case coir.OpSend, coir.OpRecv, coir.OpClose:
		if t.resumed { // the goroutine that ended the wait has done the operation for both
			return coirPrivate
		}
		return coirOnChannel
	case coir.OpSelect: // up to here it might have ended by another case
		return coirOnChannel
	case coir.OpLock, coir.OpRLock, coir.OpWLock:
		return coirOnObject // a goroutine that was woken may find the lock taken again
	}
	if t.resumed {
		return coirPrivate
	}
	return coirOnObject
}

// coirUses reports whether a transition uses an object.
func coirUses(t *coirTransition, obj uint32) bool {
	if t.op != coir.OpSelect {
		return t.obj == obj && obj != 0
	}
	for i := t.first; i < t.first+t.n; i++ {
		if coirChosen[i] == obj {
			return true
		}
	}
	return false
}

// coirCommute reports whether two operations on one object commute.
func coirCommute(a, b *coirTransition) bool {
	switch a.op {
	case coir.OpRLock, coir.OpAdd, coir.OpDone, coir.OpAtomicLoad, coir.OpMapLoad:
		return a.op == b.op
	}
	return false
}
