package sim

import (
	"context"

	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/search"
)

// DPOR runs one schedule of each trace. Schedules that differ only in the order of operations that do not conflict are
// one trace.
//
// Operations on the same channel, event or promise conflict. Any two conflict while a fiber waits in a select or a
// Selector has been given a case. A select conflicts with operations on what its cases use and, if it waits for the end
// of a fiber, with the end of every fiber. Under Nursery.Limit, operations that take or give up a place conflict. A
// cancellation, a fiber that fails, a change of a Selector's cases, a [coir.Point], [Sim.Advance], and in [ClockRacing]
// time the clock, conflict with everything. The code after an operation, up to the next, conflicts with a cancellation,
// a fiber that fails and a move of the clock, because it may check a context or the time.
//
// DPOR does not see effects between fibers through shared memory: two schedules that differ only in those count as one.
// Nor does it see
//   - a call of Len, Stats or State, of [coir.Watch.Covers], or of pubsub's Lagged,
//   - the cancellation of a context of package context,
//   - one fiber closing an endpoint of a pipe while another uses the same endpoint,
//   - effects of goroutines and the kernel, by [coir.Blocking], [coir.FromChan], [coir.ToChan], [coir.WithGoroutine],
//     another [coir.Runtime], or the descriptors and packets of package netio.
//
// A [coir.Point] before such an access announces it, if a fiber makes the access. [Exhaustive] sees all of these except
// the last.
//
// It cannot be part of a [Portfolio].
func DPOR() Strategy {
	m := new(dpor)
	m.search.Model = m
	return m
}

// dpor is the model of coir's operations for search.DPOR.
type dpor struct {
	search search.DPOR[transition]
	fork   search.Fork
	w      *world

	after   bool // the fork is after an operation
	failing bool // a fiber was seen to fail, so the end of a fiber may cancel others
	cutting bool // a cancellation was seen, or time races, so a wait for a fiber may end before the fiber
	limited bool // a nursery with a limit was seen, so a wait for fibers gives its place to others
	looking bool // contexts end, or time moves, while fibers can run, which may check them after an operation
}

// transition is the next transition of a fiber.
type transition struct {
	kind    policy.Kind
	resumed bool // the transition is the code after a wait in that operation
	rest    bool // the transition is the code after an operation that did not wait
	clock   bool // the transition is not of a fiber: time moves
	watched bool // another fiber waits in a select, through which operations on two channels may conflict
	foreign bool // a go into a nursery that may have ended
	again   bool // see policy.Op
	object  int32
	in      int32 // of the end of a fiber: the fiber's nursery
	cases   span  // of a select; all schedules that pass through a fork keep the same cases in the same place
}

// Name implements Strategy.
func (*dpor) Name() string { return "dpor" }

// Begin implements Strategy.
func (s *dpor) Begin(schedule int) bool { return s.search.Begin(schedule) }

// Choose implements Strategy.
//
//go:norace
func (s *dpor) Choose(f *Fork) int {
	s.w, f.w.whole, s.after = f.w, true, f.After
	s.fork = search.Fork{N: f.N, Keep: f.Keep, After: f.After && !s.looking, World: f.w}
	return s.search.Choose(&s.fork)
}

// check panics unless the last schedule of the world was this strategy's.
func (s *dpor) check() {
	i := 0
	for _, d := range s.w.decisions[:s.w.ndec] {
		if d.after && !s.w.rests {
			continue
		}
		if i < s.search.Forks() && d.chosen != s.search.Chosen(i) {
			break
		}
		i++
	}
	if i < s.search.Forks() {
		panic("sim: DPOR cannot be combined with another strategy")
	}
	if s.w.forgotten() > 0 {
		panic("sim: DPOR: too many operations before the first choice")
	}
}

// Learned implements search.Model.
func (s *dpor) Learned() bool {
	failing, cutting, limited, looking := s.failing, s.cutting, s.limited, s.looking
	s.failing = failing || s.sawFailure()
	s.cutting = cutting || s.failing || s.w.mode == ClockRacing
	for i := range s.w.nsteps - s.w.forgotten() {
		switch op := &s.w.traced(s.w.forgotten() + i).op; op.Kind {
		case policy.Cancel:
			s.cutting = true
		case opAdvance:
			s.looking = true
		case policy.Go:
			s.limited = s.limited || op.Limited
		}
	}
	s.looking = s.looking || s.cutting
	s.w.rests = s.looking
	return s.failing != failing || s.cutting != cutting || s.limited != limited || s.looking != looking
}

// sawFailure reports whether a fiber has ended with an error. All fibers have ended, so it does not wait.
func (s *dpor) sawFailure() bool {
	for i := 1; i < s.w.nfibers; i++ {
		if s.w.fibers[i].ended && s.w.fibers[i].f.Wait(context.Background()) != nil {
			return true
		}
	}
	return false
}

// Way implements search.Model.
//
//go:norace
func (s *dpor) Way(f *search.Fork, k int) transition {
	i := f.World.Actor(k)
	if i == search.Clock {
		return transition{clock: true, object: -1, in: -1, watched: s.watched()}
	}
	x := &s.w.fibers[i]
	t := rest
	if !x.paused && !(s.after && k == 0) {
		t = s.announced(&x.op, x.object, x.cases)
		if !x.pending {
			t.resume()
		}
	}
	t.watched = s.watched()
	return t
}

// rest is the transition after an operation that did not wait.
var rest = transition{rest: true, object: -1, in: -1}

// announced returns an operation as a transition.
//
//go:norace
func (s *dpor) announced(op *policy.Op, object int32, cases span) transition {
	t := transition{kind: op.Kind, object: object, cases: cases, foreign: op.Foreign, again: op.Again, in: -1}
	if op.Kind == policy.End {
		t.in = s.w.objectOf(policy.Op{Kind: policy.Join, Object: op.In})
	}
	return t
}

// resume makes t the transition after the wait. A selector may have been given other cases meanwhile.
//
//go:norace
func (t *transition) resume() {
	if t.resumed = true; t.kind == policy.Select && t.object >= 0 {
		t.cases = span{n: -1}
	}
}

// watched reports whether a fiber waits in a select, or has waited and not continued yet, or a selector may notice that
// an object becomes ready.
//
//go:norace
func (s *dpor) watched() bool {
	if s.w.watchable {
		return true
	}
	for i := range s.w.nfibers {
		if x := &s.w.fibers[i]; x.op.Kind == policy.Select && !x.pending {
			return true
		}
	}
	return false
}

// class is the set of operations that an operation conflicts with.
type class uint8

const (
	private  class = iota // only with classAll
	onChan                // with others on the same channel or other object, and with a select that uses it
	offChan               // the end of a wait at a channel or other object leaves its queue, which a select may see
	onAny                 // a select
	atEnd                 // the end of a fiber, which a select may wait for
	classAll              // with everything
)

//go:norace
func (s *dpor) class(t transition) class {
	if t.clock {
		return classAll
	}
	if t.rest {
		return private
	}
	switch t.kind {
	case policy.Send, policy.Recv:
		if t.resumed {
			return offChan
		}
		return onChan
	case policy.Use:
		if t.object < 0 { // WaitCancel, which uses no object
			return private
		}
		if t.resumed && !t.again {
			return offChan
		}
		return onChan
	case policy.TrySend, policy.TryRecv, policy.SendAsync, policy.RecvAsync, policy.Close, policy.Abort, policy.Leave,
		policy.Clone:
		return onChan
	case policy.Select, policy.TrySelect:
		return onAny
	case policy.Point:
		if t.object >= 0 { // other fibers use the object
			return onChan
		}
		return classAll
	case policy.End:
		if s.failing {
			return classAll
		}
		return atEnd
	case policy.Start, policy.Sleep, policy.Yield, policy.Wait, policy.Go, policy.Join:
		return private
	}
	return classAll // a cancellation, a change of a selector's cases, Sim.Advance, and unknown operations
}

// Conflict implements search.Model.
//
//go:norace
func (s *dpor) Conflict(a, b transition) bool {
	x, y := s.class(a), s.class(b)
	if x > y {
		x, y, a, b = y, x, b, a
	}
	if a.rest {
		return s.mayBeSeen(b)
	}
	if s.limited && s.places(a) && s.places(b) || mayMissTheEnd(a, b) || mayMissTheEnd(b, a) {
		return true
	}
	switch y {
	case classAll:
		return true
	case atEnd:
		if s.cutting && a.kind == policy.Wait && !a.resumed && a.object == b.object {
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

// mayBeSeen reports whether a fiber may notice a transition by checking a context or the time.
//
//go:norace
func (s *dpor) mayBeSeen(t transition) bool {
	return t.clock || !t.rest && !t.resumed &&
		(t.kind == policy.Cancel || t.kind == opAdvance || t.kind == policy.End && s.failing)
}

// mayMissTheEnd reports whether a starts a fiber in a nursery that b may end.
//
//go:norace
func mayMissTheEnd(a, b transition) bool {
	return a.foreign && a.kind == policy.Go && !a.resumed && (b.kind == policy.End || b.kind == policy.Join)
}

// places reports whether a transition may take a place under a limit, or give one up.
//
//go:norace
func (s *dpor) places(t transition) bool {
	switch t.kind {
	case policy.End, policy.Wait, policy.Join:
		return true
	case policy.Go:
		return !t.resumed
	case policy.Select:
		return s.mayAwaitAnEnd(t)
	}
	return false
}

// casesOf returns the cases of a select, and whether they are known.
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
		if c := &cases[i]; c.object == object && c.op.Kind != policy.Wait {
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
		if cases[i].op.Kind == policy.Wait {
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
		return true // on one selector, which allows one waiter
	}
	cases, known := s.casesOf(a)
	for i := range cases {
		if c := &cases[i]; c.object >= 0 && c.op.Kind != policy.Wait && s.uses(b, c.object) {
			return true
		}
	}
	return !known || b.cases.n < 0 || a.watched && b.watched
}

// Events implements search.Model, from the world's log.
func (s *dpor) Events(events []search.Event[transition], end int) []search.Event[transition] {
	s.check()
	w := s.w
	if end < 0 {
		end = w.log.n
	}
	fork := make([]int32, w.ndec) // for each decision
	count := int32(0)
	for i := range fork {
		fork[i] = -1
		if !w.decisions[i].after || w.rests {
			fork[i] = count
			count++
		}
	}
	last := make([]transition, w.nfibers)
	for i := range last {
		last[i] = transition{object: -1}
	}
	selects := make([]bool, w.nfibers) // whether each fiber waits in a select, or has waited and not continued yet
	selecting := 0
	for _, h := range w.log.all[:end] {
		e := search.Event[transition]{Actor: h.fiber, Wake: h.wake, Fork: -1, Idle: h.idle}
		if h.decision >= 0 {
			e.Fork = fork[h.decision]
		}
		if h.fiber == search.Clock {
			e.T = transition{clock: true, object: -1, in: -1}
			events = append(events, e)
			continue
		}
		if selects[h.fiber] {
			selects[h.fiber] = false
			selecting--
		}
		if h.rest {
			e.T = rest
		} else if h.step < 0 {
			e.T = last[h.fiber]
			e.T.resume()
		} else {
			x := w.traced(int(h.step))
			e.T = s.announced(&x.op, x.object, x.cases)
		}
		e.T.watched = selecting > 0 || h.watched
		if h.step >= 0 {
			last[h.fiber] = e.T
			if e.T.kind == policy.Select {
				selects[h.fiber] = true
				selecting++
			}
		}
		events = append(events, e)
	}
	return events
}

// Awaited implements search.Model: event i is the end of a wait for event j, the end of a fiber. It comes after j,
// whichever of the two began first.
func (s *dpor) Awaited(events []search.Event[transition], i, j int) bool {
	d, e := &events[j], &events[i]
	if d.T.kind != policy.End {
		return false
	}
	switch e.T.kind {
	case policy.Wait: // the code after a complete wait comes after the end of the wait
		return !e.T.resumed && e.T.object == d.T.object
	case policy.Join:
		return e.T.object >= 0 && e.T.object == d.T.in && completed(events, i)
	}
	return false
}

// completed reports whether event i, of a join, completes it: the join has not waited, or i is the end of its wait.
func completed(events []search.Event[transition], i int) bool {
	e := &events[i]
	for k := i + 1; !e.T.resumed && k < len(events); k++ {
		if events[k].Actor == e.Actor {
			return !events[k].T.resumed
		}
	}
	return true
}
