package runtime

import (
	"internal/coir"
	"internal/search"
	"unsafe"
)

// This file implements the model of search.DPOR, which defines which operations of goroutines conflict.
//
// Operations conflict if they use the same object: a channel, a lock, a WaitGroup, a Cond, a Once, an atomic. A select
// conflicts with operations on its channels. While a goroutine waits in a select, any two operations on channels
// conflict, because the first operation on one of its channels decides which case ends the select. Any two operations
// on sockets in memory conflict. The model does not include other effects between goroutines, such as those through
// shared memory, the length of a channel, a sync.Pool, or a timer that two goroutines stop. A program without data
// races accesses shared memory under a lock or by atomics.

// coirTransition is the next transition of a goroutine.
type coirTransition struct {
	op      uint8
	resumed bool // it continues after a wait in the operation, or starts the goroutine
	watched bool // meanwhile a goroutine waits in a select
	clock   bool // it is not of a goroutine: all goroutines wait, and the clock moves
	obj     uint32
	first   int32 // the channels of a select are n entries of coirChosen from first
	n       int32
}

// coirEvent is a transition that has happened.
type coirEvent struct {
	t     coirTransition
	actor int32
	fork  int32 // the decision that led to it; -1 if none did
	wake  int32 // the event that made it possible; -1 if none did
}

// coirLog records the events of a schedule for search.DPOR.
//
//   - If logging, event i is in coirEvents[i] if i < coirMaxEvents. Later events are counted, but the schedule is too
//     long for search.DPOR.
//   - If logging, selecting is the number of goroutines whose coirG.selecting is set.
type coirLog struct {
	logging   bool
	nevents   int
	nchosen   int // entries of coirChosen that are in use
	selecting int // goroutines that wait in a select, or were woken there and have not continued
}

var coirEvents [coirMaxEvents]coirEvent

// coirChosen has the channels of selects. It is not a ring: a schedule that fills it is too long for search.DPOR.
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

// coirGoesOn records that a goroutine performs the operation of its last point, or continues after a wait.
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

// happens adds an event to the log.
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

// Awaited reports whether event i is the end of a Wait, and event j a Done of the same WaitGroup: the end comes after
// each Done, although these commute with each other.
func (coirModel) Awaited(events []search.Event[coirTransition], i, j int) bool {
	d, e := &events[j].T, &events[i].T
	return e.op == coir.OpWait && e.resumed && d.op == coir.OpDone && d.obj == e.obj
}

func (coirModel) Conflict(a, b coirTransition) bool {
	if a.clock || b.clock {
		return true
	}
	if coir.OnNetwork(int(a.op)) && coir.OnNetwork(int(b.op)) {
		return true // an operation on a socket may use several objects: both ends, a port, the listener
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
	coirPrivate = iota // it conflicts only with moves of the clock
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
	case coir.OpSelect: // until now another case might have ended it
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

// coirCommute reports whether two operations on the same object commute.
func coirCommute(a, b *coirTransition) bool {
	switch a.op {
	case coir.OpRLock, coir.OpAdd, coir.OpDone, coir.OpAtomicLoad, coir.OpMapLoad:
		return a.op == b.op
	}
	return false
}
