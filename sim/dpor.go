package sim

import (
	"context"
	"math/bits"

	"github.com/coir-go/coir"
)

// Most schedules differ in nothing: two fibers that use different channels do not notice which of them went first. Schedules
// that can be turned into each other by swapping neighbours that do not conflict are one trace, and one schedule of each trace is
// enough. To find them without running the others is dynamic partial-order reduction, here with source sets and sleep
// sets (Abdulla, Aronis, Jonsson, Sagonas: Optimal Dynamic Partial Order Reduction, POPL 2014):
//
//   - After each schedule look for races: two operations of different fibers that conflict, with nothing in between that puts them in
//     order. Where the first was chosen, somebody has to be tried who leads to the second going first. Who that may be are the
//     initials of what happened after the first and not because of it; one of them is enough, and if one was tried or is to
//     be, nothing is to do.
//   - What was tried at a point sleeps afterwards in whatever else is tried there, until something that conflicts with it happens.
//
// To try only the fiber of the second operation looks right and is not: if it sleeps, or only gets there after another, the
// schedule is lost. TestDPORSeesEveryTraceOnce compares with all schedules.
//
// A transition is what a fiber does between two points: its announced operation and what follows up to the next, or, if it was
// woken, what follows the wait.

// DPOR goes through one schedule of each trace: of all those that differ only in the order of operations that do not conflict.
//
// Operations conflict on the same channel, and on any two while a fiber waits in a select or a Selector has been given
// a case; a select conflicts with operations on its channels, and if it waits for the end of a fiber, with that of
// every fiber. Under Nursery.Limit whatever takes or gives up a place conflicts. A cancel, a fiber that fails, a change
// of a Selector's cases, a [Point], [Sim.Advance], and in [Racing] time the clock, conflict with everything.
//
// What fibers do to each other by memory that they share is not seen, and two schedules that differ only in that count
// as one; so are a look at Len or Stats, a cancel of a context of package context, and one endpoint of a pipe that is
// closed by one fiber while another uses it.
// [Exhaustive] has no such limits, and a [Point] before it tells.
//
// It runs alone, not in a [Portfolio].
func DPOR() Strategy { return new(dpor) }

type dpor struct {
	w     *world
	nodes []dporNode
	n     int // of nodes
	ways  []dporWay
	nways int
	at    int // decisions made in this schedule

	asleep  bool // the schedule goes on only with what was tried before: it is of a trace that is known
	cut     int  // the step at which that was found
	failing bool // a fiber was seen to fail, so an end may be a cancel
	cutting bool // a cancel was seen, or time races, so a wait for a fiber may end before the fiber
	limited bool // a nursery with a limit was seen, so whoever waits for fibers gives its place to others
	turned  int  // the node whose choice is new
	fresh   int  // the first event after it: races among those before were found before

	redundant int // schedules that were of a known trace

	events []dporEvent
	before []uint64 // a row of bits for each event: those that happen before it
	stride int
}

// dporNode is a decision of the schedule.
type dporNode struct {
	value  bool // a value is chosen, among of; else one of ways[first:first+of]
	chosen int32
	first  int32
	of     int32
	at     int32 // what had happened before, in the world's log
}

// dporWay is what a fiber would do at a point.
type dporWay struct {
	fiber  int32 // tick: the clock
	t      transition
	moves  int32 // of the fiber, before this one
	try    bool  // in the source set
	done   bool
	asleep bool
}

// transition is what a fiber does next.
type transition struct {
	kind    coir.OpKind
	resumed bool // what follows a wait in that operation
	clock   bool // no fiber at all: time moves
	watched bool // somebody else waits in a select meanwhile, which ends with the first of its cases: here two channels meet
	foreign bool // a go into a nursery that may have ended
	object  int32
	in      int32 // of an end, the nursery that the fiber is in
	cases   span  // of a select. What was announced before a point is the same in all schedules that go through it, and so is where it is kept
}

// dporEvent is a transition that has happened.
type dporEvent struct {
	fiber int32
	t     transition
	node  int32 // where it was chosen; -1: there was no choice
	wake  int32 // the event that made it possible, if it ends a wait or begins a fiber; -1: none
	idle  bool  // time moved because nobody could run: comes after everything before, and before everything after
}

func (*dpor) Name() string { return "dpor" }

// Begin looks at the last schedule, and goes on to the next: the last decision that has something left to try takes it.
func (s *dpor) Begin(schedule int) bool {
	defer func() { s.asleep, s.at = false, 0 }()
	if schedule == 0 {
		s.n, s.nways, s.turned = 0, 0, 0
		return true
	}
	if s.w == nil {
		return false // there was no choice at all
	}
	if s.learned() { // all that was taken for independent may not have been: begin again
		s.n, s.nways, s.turned = 0, 0, 0
		return true
	}
	s.check()
	s.reconstruct()
	s.race()
	for ; s.n > 0; s.n-- {
		x := &s.nodes[s.n-1]
		if x.value {
			if x.chosen+1 < x.of {
				x.chosen++
				break
			}
			continue
		}
		ways := s.waysAt(x)
		ways[x.chosen].done = true
		if i := untried(ways); i >= 0 {
			x.chosen = i
			break
		}
		s.nways = int(x.first)
	}
	s.turned = s.n - 1
	return s.n > 0
}

func (s *dpor) waysAt(x *dporNode) []dporWay { return s.ways[x.first : x.first+x.of] }

func untried(ways []dporWay) int32 {
	for i := range ways {
		if w := &ways[i]; w.try && !w.done && !w.asleep {
			return int32(i)
		}
	}
	return -1
}

// check makes sure that the last schedule of the world was this strategy's.
func (s *dpor) check() {
	i := 0
	for _, d := range s.w.decisions[:s.w.ndec] {
		if d.after {
			continue
		}
		if i < s.n && d.chosen != s.nodes[i].chosen {
			break
		}
		i++
	}
	if i < s.n {
		panic("sim: DPOR shares the exploration with another strategy")
	}
	if s.w.forgotten() > 0 {
		panic("sim: DPOR: the program does more than it can look at before there is a choice")
	}
}

// learned reports whether the last schedule has shown something for the first time that makes more conflict.
func (s *dpor) learned() bool {
	failing, cutting, limited := s.failing, s.cutting, s.limited
	s.failing = failing || s.sawFailure()
	s.cutting = cutting || s.failing || s.w.mode == Racing
	for i := range s.w.nsteps - s.w.forgotten() {
		switch op := &s.w.traced(s.w.forgotten() + i).op; op.Kind {
		case coir.OpCancel:
			s.cutting = true
		case coir.OpGo:
			s.limited = s.limited || op.Limited
		}
	}
	return s.failing != failing || s.cutting != cutting || s.limited != limited
}

// sawFailure reports whether a fiber has ended with an error. All have ended, so none is waited for.
func (s *dpor) sawFailure() bool {
	for i := 1; i < s.w.nfibers; i++ {
		if s.w.fibers[i].ended && s.w.fibers[i].f.Wait(context.Background()) != nil {
			return true
		}
	}
	return false
}

// Choose implements Strategy.
//
//go:norace
func (s *dpor) Choose(p *Fork) int {
	s.w, p.w.whole = p.w, true
	if p.After { // what follows an operation, up to the next, is the fiber's own
		return 0
	}
	i := s.at
	s.at++
	if i < s.n {
		if int(s.nodes[i].of) != p.N {
			panic("sim: DPOR: the program does not do the same again in the same schedule")
		}
		return int(s.nodes[i].chosen)
	}
	if s.asleep {
		return 0
	}
	if s.n == len(s.nodes) {
		s.nodes = doubled(s.nodes)
	}
	x := &s.nodes[s.n]
	*x = dporNode{of: int32(p.N), first: int32(s.nways), at: int32(p.w.nlog)}
	if p.Fiber(0) == value {
		x.value = true
		s.n++
		return 0
	}
	for s.nways+p.N > len(s.ways) {
		s.ways = doubled(s.ways)
	}
	ways := s.ways[s.nways : s.nways+p.N]
	watched := s.watched()
	for k := range ways {
		ways[k] = s.way(p, k)
		ways[k].t.watched = watched
	}
	if !s.inherit(ways) {
		s.asleep, s.cut = true, p.w.nlog
		return 0
	}
	for k := range ways {
		if !ways[k].asleep {
			ways[k].try = true
			x.chosen = int32(k)
			s.n++
			s.nways += p.N
			return k
		}
	}
	s.asleep, s.cut = true, p.w.nlog
	return 0
}

// way is what way k of the point would do.
//
//go:norace
func (s *dpor) way(p *Fork, k int) dporWay {
	f := p.Fiber(k)
	if f == tick { // conflicts with everything, and unlike a fiber may never get there by itself: the others can stop all timers
		return dporWay{fiber: tick, t: transition{clock: true, object: -1, in: -1}, try: true}
	}
	x := &p.w.fibers[f]
	t := s.announced(&x.op, x.object, x.cases)
	if !x.pending {
		t.resume()
	}
	return dporWay{fiber: int32(f), moves: x.moves, t: t}
}

// announced is an operation as a transition.
//
//go:norace
func (s *dpor) announced(op *coir.Op, object int32, cases span) transition {
	t := transition{kind: op.Kind, object: object, cases: cases, foreign: op.Foreign, in: -1}
	if op.Kind == coir.OpEnd {
		t.in = s.w.objectOf(coir.Op{Kind: coir.OpJoin, Object: op.In})
	}
	return t
}

// resume makes it what follows the wait. A selector may have got other cases meanwhile.
//
//go:norace
func (t *transition) resume() {
	if t.resumed = true; t.kind == coir.OpSelect && t.object >= 0 {
		t.cases = span{n: -1}
	}
}

// watched reports whether a fiber waits in a select, or did and has not gone on, or a selector may note what becomes
// ready.
//
//go:norace
func (s *dpor) watched() bool {
	if s.w.watchable {
		return true
	}
	for i := range s.w.nfibers {
		if x := &s.w.fibers[i]; x.op.Kind == coir.OpSelect && !x.pending {
			return true
		}
	}
	return false
}

// inherit has those sleep who slept, or had been tried, at the last choice of a fiber and do not conflict with what was chosen. It
// reports false if one of them has run meanwhile, because nobody else could.
//
//go:norace
func (s *dpor) inherit(ways []dporWay) bool {
	i := s.n - 1
	for i >= 0 && s.nodes[i].value {
		i--
	}
	if i < 0 {
		return true
	}
	x := &s.nodes[i]
	last := s.ways[x.first : x.first+x.of]
	for k := range last {
		q := &last[k]
		if int32(k) == x.chosen || !q.asleep && !q.done || s.conflict(q.t, last[x.chosen].t) {
			continue
		}
		same := -1
		for j := range ways {
			if ways[j].fiber == q.fiber && ways[j].moves == q.moves {
				same = j
			}
		}
		if same < 0 {
			return false
		}
		ways[same].asleep = true
	}
	return true
}

// class is how an operation conflicts.
type class uint8

const (
	private  class = iota // with nothing but classAll
	onChan                // with others on the same channel, and with a select of it
	offChan               // the end of a wait at a channel leaves its queue, which a select may see
	onAny                 // a select
	atEnd                 // the end of a fiber, which a select may wait for
	classAll              // with everything
)

//go:norace
func (s *dpor) class(t transition) class {
	if t.clock {
		return classAll
	}
	switch t.kind {
	case coir.OpSend, coir.OpRecv:
		if t.resumed {
			return offChan
		}
		return onChan
	case coir.OpTrySend, coir.OpTryRecv, coir.OpClose, coir.OpAbort, coir.OpLeave, coir.OpClone:
		return onChan
	case coir.OpSelect, coir.OpTrySelect:
		return onAny
	case coir.OpPoint:
		if t.object >= 0 { // of a thing's own, which others see
			return onChan
		}
		return classAll
	case coir.OpCancel, coir.OpRegister, opAdvance:
		return classAll
	case coir.OpEnd:
		if s.failing {
			return classAll
		}
		return atEnd
	}
	return private
}

// conflict reports whether the order of two transitions of different fibers may matter.
//
//go:norace
func (s *dpor) conflict(a, b transition) bool {
	x, y := s.class(a), s.class(b)
	if x > y {
		x, y, a, b = y, x, b, a
	}
	if s.limited && s.places(a) && s.places(b) || mayMissTheEnd(a, b) || mayMissTheEnd(b, a) {
		return true
	}
	switch y {
	case classAll:
		return true
	case atEnd:
		if s.cutting && a.kind == coir.OpWait && !a.resumed && a.object == b.object {
			return true
		}
		return x == onAny && s.mayAwaitAnEnd(a) || x != private && x != offChan && a.watched && b.watched
	case onAny:
		switch x {
		case private:
			return false
		case onAny:
			return s.meetIn(a, b)
		}
		return s.uses(b, a.object) || x == onChan && a.watched && b.watched
	case onChan:
		return x == onChan && (a.object == b.object || a.watched && b.watched)
	}
	return false
}

// mayMissTheEnd reports whether a starts a fiber in a nursery that b may end.
//
//go:norace
func mayMissTheEnd(a, b transition) bool {
	return a.foreign && a.kind == coir.OpGo && !a.resumed && (b.kind == coir.OpEnd || b.kind == coir.OpJoin)
}

// places reports whether a transition may take a place under a limit, or give one up.
//
//go:norace
func (s *dpor) places(t transition) bool {
	switch t.kind {
	case coir.OpEnd, coir.OpWait, coir.OpJoin:
		return true
	case coir.OpGo:
		return !t.resumed
	case coir.OpSelect:
		return s.mayAwaitAnEnd(t)
	}
	return false
}

// casesOf is the cases of a select, and whether they are known.
//
//go:norace
func (s *dpor) casesOf(t transition) ([]choice, bool) {
	if t.cases.n < 0 {
		return nil, false
	}
	return s.w.cases[t.cases.first : t.cases.first+int(t.cases.n)], true
}

// uses reports whether a select may use a channel.
//
//go:norace
func (s *dpor) uses(t transition, object int32) bool {
	cases, known := s.casesOf(t)
	for i := range cases {
		if c := &cases[i]; c.object == object && (c.op.Kind == coir.OpSend || c.op.Kind == coir.OpRecv || c.op.Kind == coir.OpLeave) {
			return true
		}
	}
	return !known
}

// mayAwaitAnEnd reports whether a select may wait for the end of a fiber.
//
//go:norace
func (s *dpor) mayAwaitAnEnd(t transition) bool {
	cases, known := s.casesOf(t)
	for i := range cases {
		if cases[i].op.Kind == coir.OpWait {
			return true
		}
	}
	return !known || t.watched
}

// meetIn reports whether two selects may use the same channel, or meet in a third.
//
//go:norace
func (s *dpor) meetIn(a, b transition) bool {
	if a.object >= 0 && a.object == b.object {
		return true // at one selector, which has room for one
	}
	cases, known := s.casesOf(a)
	for i := range cases {
		if c := &cases[i]; c.object >= 0 && c.op.Kind != coir.OpWait && s.uses(b, c.object) {
			return true
		}
	}
	return !known || b.cases.n < 0 || a.watched && b.watched
}

// reconstruct lists what has happened in the last schedule, from the world's log.
func (s *dpor) reconstruct() {
	w := s.w
	s.events = s.events[:0]
	end := w.nlog
	if s.asleep {
		end = s.cut
		s.redundant++
	}
	s.fresh = 0
	if s.turned >= 0 && s.turned < s.n {
		s.fresh = int(s.nodes[s.turned].at)
	}
	node := make([]int32, w.ndec) // of each decision
	count := int32(0)
	for i := range node {
		node[i] = -1
		if !w.decisions[i].after {
			if int(count) < s.n {
				node[i] = count
			}
			count++
		}
	}
	last := make([]transition, w.nfibers)
	for i := range last {
		last[i] = transition{object: -1}
	}
	selects := make([]bool, w.nfibers) // waits in a select, or did and has not gone on
	selecting := 0
	for _, h := range w.log[:end] {
		e := dporEvent{fiber: h.fiber, wake: h.wake, node: -1, idle: h.idle}
		if h.decision >= 0 {
			e.node = node[h.decision]
		}
		if h.fiber == tick {
			e.t = transition{clock: true, object: -1, in: -1}
			s.events = append(s.events, e)
			continue
		}
		if selects[h.fiber] {
			selects[h.fiber] = false
			selecting--
		}
		if h.step < 0 {
			e.t = last[h.fiber]
			e.t.resume()
		} else {
			x := w.traced(int(h.step))
			e.t = s.announced(&x.op, x.object, x.cases)
		}
		e.t.watched = selecting > 0 || h.watched
		if h.step >= 0 {
			last[h.fiber] = e.t
			if e.t.kind == coir.OpSelect {
				selects[h.fiber] = true
				selecting++
			}
		}
		s.events = append(s.events, e)
	}
}

// race finds the races of the last schedule and what is to be tried because of them.
func (s *dpor) race() {
	n := len(s.events)
	s.stride = (n + 63) / 64
	if need := n * s.stride; len(s.before) < need {
		s.before = make([]uint64, 2*need)
	}
	clear(s.before[:n*s.stride])
	last := make([]int32, s.w.nfibers)
	for i := range last {
		last[i] = -1
	}
	ticked := int32(-1)
	for i := range s.events {
		e := &s.events[i]
		own := &ticked
		if e.fiber >= 0 {
			own = &last[e.fiber]
		}
		if *own >= 0 {
			s.after(i, int(*own))
		}
		*own = int32(i)
		if e.wake >= 0 {
			s.after(i, int(e.wake))
		}
		for j := i - 1; j >= 0; j-- {
			d := &s.events[j]
			if d.fiber == e.fiber || s.isBefore(j, i) {
				continue
			}
			switch {
			case d.idle || e.idle:
				s.after(i, j)
			case s.awaited(i, j) && !s.conflict(d.t, e.t):
				s.after(i, j) // who waits for an end comes after it, in whichever order they began
			case s.conflict(d.t, e.t):
				if i >= s.fresh && d.node >= 0 {
					s.reverse(j, i)
				}
				s.after(i, j)
			}
		}
	}
}

// awaited reports whether event i is the end of a wait for event j, the end of a fiber.
func (s *dpor) awaited(i, j int) bool {
	d, e := &s.events[j], &s.events[i]
	if d.t.kind != coir.OpEnd {
		return false
	}
	switch e.t.kind {
	case coir.OpWait: // what follows a wait that was not cut short comes after what has ended it
		return !e.t.resumed && e.t.object == d.t.object
	case coir.OpJoin:
		return e.t.object >= 0 && e.t.object == d.t.in && s.completed(i)
	}
	return false
}

// completed reports whether event i, a join, is the end of it: not one that is followed by a wait.
func (s *dpor) completed(i int) bool {
	e := &s.events[i]
	for k := i + 1; !e.t.resumed && k < len(s.events); k++ {
		if s.events[k].fiber == e.fiber {
			return !s.events[k].t.resumed
		}
	}
	return true
}

func (s *dpor) row(i int) []uint64 { return s.before[i*s.stride : (i+1)*s.stride] }

func (s *dpor) isBefore(j, i int) bool { return s.before[i*s.stride+j/64]>>(j%64)&1 != 0 }

// after notes that event i happens after event j, and all that j happens after.
func (s *dpor) after(i, j int) {
	to, from := s.row(i), s.row(j)
	for k := range j/64 + 1 {
		to[k] |= from[k]
	}
	to[j/64] |= 1 << (j % 64)
}

// reverse sees to it that somebody is tried in place of event j that leads to event i happening before it.
func (s *dpor) reverse(j, i int) {
	// What happened after j, not because of it, and then i; of that the initials: events with nothing of it before them.
	rest := make([]uint64, s.stride)
	for k := j + 1; k <= i; k++ {
		if k < i && s.isBefore(j, k) {
			continue
		}
		rest[k/64] |= 1 << (k % 64)
	}
	ways := s.waysAt(&s.nodes[s.events[j].node])
	first := -1
	for word, b := range rest {
		for ; b != 0; b &= b - 1 {
			k := word*64 + bits.TrailingZeros64(b)
			if s.meets(s.row(k), rest) {
				continue
			}
			for m := range ways {
				if ways[m].fiber != s.events[k].fiber {
					continue
				}
				if ways[m].try || ways[m].asleep { // what sleeps has been tried earlier, with the same to come
					return
				}
				if first < 0 {
					first = m
				}
			}
		}
	}
	if first >= 0 {
		ways[first].try = true
		return
	}
	for m := range ways { // cannot be, unless something is ordered in a way that is not announced
		ways[m].try = true
	}
}

func (s *dpor) meets(a, b []uint64) bool {
	for i := range a {
		if a[i]&b[i] != 0 {
			return true
		}
	}
	return false
}
