package search

import "math/bits"

// Most schedules do not differ in effect: if two actors use different objects, their order does not matter. Schedules
// that can be transformed into each other by swapping neighbours that do not conflict are one trace, and one schedule
// of each trace is enough. Dynamic partial-order reduction finds these without running the others, here with source
// sets and sleep sets (Abdulla, Aronis, Jonsson, Sagonas: Optimal Dynamic Partial Order Reduction, POPL 2014):
//
//   - After each schedule, look for races: two transitions of different actors that conflict, with nothing in between
//     that orders them. At the fork where the first transition was chosen, an actor must be tried that lets the second
//     go first. Such actors are the initials of the transitions that followed the first one and were not caused by it.
//     If one of the initials was tried or is marked to be tried, nothing is left to do.
//   - A way that was tried at a fork then sleeps while other ways are tried there, until a transition happens that
//     conflicts with it.
//
// Trying only the actor of the second transition looks right, but it misses schedules in which that actor sleeps, or
// needs another actor to get there.
//
// A transition is the work of an actor between two points: its announced operation and the code up to the next one, or,
// if the actor was woken, the code after the wait.

// Model is a program whose transitions are of type T, as DPOR sees it.
type Model[T any] interface {
	// Way returns the transition with which way k of a fork begins. Like Choose, it is called while a schedule runs.
	Way(f *Fork, k int) T
	// Conflict reports whether the order of two transitions of different actors may matter. It too is called while a
	// schedule runs.
	Conflict(a, b T) bool
	// Learned reports whether the last schedule revealed that more transitions conflict, so that the search must begin
	// again.
	Learned() bool
	// Events appends the events of the last schedule, from the log up to end. An event that a decision caused has the
	// number of its fork among the forks that are not After.
	Events(events []Event[T], end int) []Event[T]
	// Awaited reports whether event i comes after event j in each schedule, although they do not conflict.
	Awaited(events []Event[T], i, j int) bool
}

// Event is a transition that has happened.
type Event[T any] struct {
	Actor int32 // or Clock
	T     T
	Fork  int32 // the fork where it was chosen, or -1 if there was no choice
	Wake  int32 // the event that made it possible, if it ends a wait or begins an actor; otherwise -1
	Idle  bool  // time advanced because no actor could run: it is ordered with all other events
}

// DPOR runs at least one schedule of each trace of a model. It cannot be part of a [Portfolio].
type DPOR[T any] struct {
	Model     Model[T]
	Redundant int // schedules of a known trace

	nodes table[node]
	ways  table[way[T]]
	at    int  // forks met in this schedule
	began bool // there has been a fork
	ended bool // nothing was left to try
	cut   bool // a schedule was too long

	asleep bool // only ways that were tried before can continue, so the schedule is of a known trace
	known  int  // the length of the log when that was found
	turned int  // the node whose choice is new
	fresh  int  // the first event after it: earlier races are already known

	events []Event[T]
	before []uint64 // a row of bits for each event: the events that happen before it
	stride int
}

// node is a fork of the schedule.
type node struct {
	value  bool // a value below of is chosen; otherwise one of ways[first:first+of]
	chosen int
	of     int
	first  int32
	at     int32 // events before it
}

// way is a possible transition of an actor at a fork.
type way[T any] struct {
	actor  int32
	moves  int32 // of the actor, before this one
	try    bool  // in the source set
	done   bool
	asleep bool
	t      T
}

// A schedule with more forks, more ways at its forks, or more events than these is too long for DPOR.
const mostForks, mostWays, mostEvents = 1 << 17, 1 << 20, 1 << 14

// Name implements Strategy.
func (*DPOR[T]) Name() string { return "dpor" }

func (*DPOR[T]) steady() bool { return true }

// Complete reports whether one schedule of each trace has been run: Begin has returned false, and no schedule was too
// long.
func (s *DPOR[T]) Complete() bool { return s.ended && !s.cut }

// Begin examines the last schedule and prepares the next: the last decision with an untried way takes it.
func (s *DPOR[T]) Begin(schedule int) bool {
	defer func() { s.asleep, s.at = false, 0 }()
	again1, long1 := s.nodes.room(mostForks)
	again2, long2 := s.ways.room(mostWays)
	switch {
	case schedule == 0:
		s.restart()
		s.began, s.ended, s.cut = false, false, false
		return true
	case !s.began:
		s.ended = true
		return false
	case long1 || long2:
		s.cut = true
		return false
	case s.Model.Learned(): // transitions that seemed independent may not be: begin again
		s.restart()
		return true
	case again1 || again2:
		return true
	}
	end := -1
	if s.asleep {
		end = s.known
		s.Redundant++
	}
	s.events = s.Model.Events(s.events[:0], end)
	if len(s.events) > mostEvents {
		s.cut = true
		return false
	}
	s.fresh = 0
	if s.turned >= 0 && s.turned < s.nodes.n {
		s.fresh = int(s.nodes.rows[s.turned].at)
	}
	s.race()
	for ; s.nodes.n > 0; s.nodes.n-- {
		x := &s.nodes.rows[s.nodes.n-1]
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
		s.ways.n = int(x.first)
	}
	s.turned = s.nodes.n - 1
	s.ended = s.nodes.n == 0
	return !s.ended
}

func (s *DPOR[T]) restart() { s.nodes.n, s.ways.n, s.turned = 0, 0, 0 }

// Forks returns how many forks of the last schedule are known. That is fewer than it had, if it was of a known trace.
func (s *DPOR[T]) Forks() int { return s.nodes.n }

// Chosen returns the way to take at fork i.
func (s *DPOR[T]) Chosen(i int) int { return s.nodes.rows[i].chosen }

//go:norace
func (s *DPOR[T]) waysAt(x *node) []way[T] { return s.ways.rows[x.first : int(x.first)+x.of] }

func untried[T any](ways []way[T]) int {
	for i := range ways {
		if w := &ways[i]; w.try && !w.done && !w.asleep {
			return i
		}
	}
	return -1
}

// Choose implements Strategy.
//
//go:norace
func (s *DPOR[T]) Choose(f *Fork) int {
	s.began = true
	if f.After { // the code after an operation, up to the next, is part of the transition
		return 0
	}
	i := s.at
	s.at++
	if i < s.nodes.n {
		if s.nodes.rows[i].of != f.N {
			panic("DPOR: the program does not repeat itself in the same schedule")
		}
		return s.nodes.rows[i].chosen
	}
	if s.asleep || s.nodes.full || s.ways.full {
		return 0
	}
	if s.nodes.n == len(s.nodes.rows) {
		s.nodes.full = true
		return 0
	}
	x := &s.nodes.rows[s.nodes.n]
	*x = node{of: f.N, first: int32(s.ways.n), at: int32(f.World.Logged())}
	if f.World.Actor(0) == Value {
		x.value = true
		s.nodes.n++
		return 0
	}
	if s.ways.n+f.N > len(s.ways.rows) {
		s.ways.full = true
		return 0
	}
	ways := s.ways.rows[s.ways.n : s.ways.n+f.N]
	for k := range ways {
		a := f.World.Actor(k)
		ways[k] = way[T]{actor: int32(a), t: s.Model.Way(f, k)}
		if a == Clock { // conflicts with everything; try it, because the others could stop all timers first
			ways[k].try = true
		} else {
			ways[k].moves = f.World.Moves(a)
		}
	}
	if s.inherit(ways) {
		for k := range ways {
			if !ways[k].asleep {
				ways[k].try = true
				x.chosen = k
				s.nodes.n++
				s.ways.n += f.N
				return k
			}
		}
	}
	s.asleep, s.known = true, f.World.Logged()
	return 0
}

// inherit puts to sleep the ways that slept, or had been tried, at the last choice of an actor and do not conflict with
// that choice. It returns false if one of them has run since, because no other could.
//
//go:norace
func (s *DPOR[T]) inherit(ways []way[T]) bool {
	i := s.nodes.n - 1
	for i >= 0 && s.nodes.rows[i].value {
		i--
	}
	if i < 0 {
		return true
	}
	x := &s.nodes.rows[i]
	last := s.waysAt(x)
	for k := range last {
		q := &last[k]
		if k == x.chosen || !q.asleep && !q.done || s.Model.Conflict(q.t, last[x.chosen].t) {
			continue
		}
		same := -1
		for j := range ways {
			if ways[j].actor == q.actor && ways[j].moves == q.moves {
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

// race finds the races of the last schedule and marks the ways that must be tried because of them.
func (s *DPOR[T]) race() {
	n := len(s.events)
	s.stride = (n + 63) / 64
	if need := n * s.stride; len(s.before) < need {
		s.before = make([]uint64, 2*need)
	}
	clear(s.before[:n*s.stride])
	most := int32(-1)
	for i := range s.events {
		most = max(most, s.events[i].Actor)
	}
	last := make([]int32, most+1)
	for i := range last {
		last[i] = -1
	}
	ticked := int32(-1)
	for i := range s.events {
		e := &s.events[i]
		own := &ticked
		if e.Actor >= 0 {
			own = &last[e.Actor]
		}
		if *own >= 0 {
			s.after(i, int(*own))
		}
		*own = int32(i)
		if e.Wake >= 0 {
			s.after(i, int(e.Wake))
		}
		for j := i - 1; j >= 0; j-- {
			d := &s.events[j]
			if d.Actor == e.Actor || s.isBefore(j, i) {
				continue
			}
			conflict := s.Model.Conflict(d.T, e.T)
			switch {
			case d.Idle || e.Idle, !conflict && s.Model.Awaited(s.events, i, j):
				s.after(i, j)
			case conflict:
				if i >= s.fresh && d.Fork >= 0 && int(d.Fork) < s.nodes.n {
					s.reverse(j, i)
				}
				s.after(i, j)
			}
		}
	}
}

func (s *DPOR[T]) row(i int) []uint64 { return s.before[i*s.stride : (i+1)*s.stride] }

func (s *DPOR[T]) isBefore(j, i int) bool { return s.before[i*s.stride+j/64]>>(j%64)&1 != 0 }

// after records that event i happens after event j, and after all that j happens after.
func (s *DPOR[T]) after(i, j int) {
	to, from := s.row(i), s.row(j)
	for k := range j/64 + 1 {
		to[k] |= from[k]
	}
	to[j/64] |= 1 << (j % 64)
}

// reverse ensures that at the fork of event j an actor is tried that makes event i happen first.
func (s *DPOR[T]) reverse(j, i int) {
	// The events that happened after j but not because of it, followed by i. The initials are those that no other of
	// these events happens before.
	rest := make([]uint64, s.stride)
	for k := j + 1; k <= i; k++ {
		if k < i && s.isBefore(j, k) {
			continue
		}
		rest[k/64] |= 1 << (k % 64)
	}
	ways := s.waysAt(&s.nodes.rows[s.events[j].Fork])
	first := -1
	for word, b := range rest {
		for ; b != 0; b &= b - 1 {
			k := word*64 + bits.TrailingZeros64(b)
			if intersect(s.row(k), rest) {
				continue
			}
			for m := range ways {
				if ways[m].actor != s.events[k].Actor {
					continue
				}
				if ways[m].try || ways[m].asleep { // a sleeping way was tried earlier, with the same continuation
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
	for m := range ways { // impossible, unless something is ordered that is not announced
		ways[m].try = true
	}
}

func intersect(a, b []uint64) bool {
	for i := range a {
		if a[i]&b[i] != 0 {
			return true
		}
	}
	return false
}
