package sim

import (
	"slices"

	"github.com/coir-go/coir/internal/replay"
	"github.com/coir-go/coir/internal/search"
)

// course records which fibers a schedule has let run, in turns, and makes a schedule follow such a record. A script is
// a list of decisions by their numbers: where one of them is changed, those after it mean something else. A course goes
// on to mean the same.
type course struct {
	w      *world
	turns  []replay.Turn
	nturns int
	values []value
	nvals  int
	clocks int // how often time was chosen to move

	follow *replay.Course // nil: only record
	at     int            // the first turn of it that is not done
	drawn  []int          // how many of its values were used
}

// value is a decision that is not which fiber runs, made for the fiber that runs, or for none.
type value struct {
	by  int // one more than the fiber
	way int
}

// clockTurn is the actor of a turn of the clock.
const clockTurn = -1

// begin forgets what was recorded. The schedule that follows goes the way of c, which may be nil.
func (r *course) begin(c *replay.Course) {
	r.nturns, r.nvals, r.clocks = 0, 0, 0
	r.follow, r.at = c, 0
	if c != nil {
		r.drawn = make([]int, len(c.Values))
	}
}

// recorded returns a copy of what was recorded.
func (r *course) recorded() *replay.Course {
	c := &replay.Course{Turns: slices.Clone(r.turns[:r.nturns]), Values: make([][]int, 1+r.w.nfibers)}
	for _, v := range r.values[:r.nvals] {
		c.Values[v.by] = append(c.Values[v.by], v.way)
	}
	return c
}

// moved records that a fiber, or the clock, has been chosen for the to'th time.
//
//go:norace
func (r *course) moved(actor, to int) {
	if n := r.nturns; n > 0 && r.turns[n-1].Actor == actor {
		r.turns[n-1].To = to
		return
	}
	if r.nturns == len(r.turns) {
		r.turns = doubled(r.turns)
	}
	r.turns[r.nturns] = replay.Turn{Actor: actor, To: to}
	r.nturns++
}

// decided records a decision for way d.
//
//go:norace
func (r *course) decided(d int) {
	switch {
	case r.w.ways[0] == search.Value:
		if r.nvals == len(r.values) {
			r.values = doubled(r.values)
		}
		r.values[r.nvals] = value{int(r.w.current) + 1, d}
		r.nvals++
	case r.w.ways[d] == search.Clock:
		r.clocks++
		r.moved(clockTurn, r.clocks)
	}
}

// Name implements Strategy.
func (*course) Name() string { return "course" }

// Begin implements Strategy.
func (*course) Begin(int) bool { return true }

// Choose implements Strategy. It lets the actor run whose turn it is, or if that cannot run, the one after it.
//
//go:norace
func (r *course) Choose(p *Fork) int {
	if r.w.ways[0] == search.Value {
		return r.value(int(r.w.current)+1, p.N)
	}
	for r.at < len(r.follow.Turns) && r.done(r.follow.Turns[r.at]) {
		r.at++
	}
	if r.at == len(r.follow.Turns) {
		return 0
	}
	for _, t := range r.follow.Turns[r.at:min(len(r.follow.Turns), r.at+lookAhead)] {
		if r.done(t) {
			continue
		}
		for k := range p.N {
			if to := int(r.w.ways[k]); to == t.Actor || to == search.Clock && t.Actor == clockTurn {
				return k
			}
		}
	}
	r.at++ // the actor of that turn may never come
	return 0
}

// lookAhead bounds how many turns a decision looks at.
const lookAhead = 64

// done reports whether a turn has come to its end.
//
//go:norace
func (r *course) done(t replay.Turn) bool {
	if t.Actor == clockTurn {
		return r.clocks >= t.To
	}
	if t.Actor >= r.w.nfibers {
		return false
	}
	x := &r.w.fibers[t.Actor]
	return x.ended || int(x.moves) >= t.To
}

// value returns the next value for a fiber, or for none, below n.
//
//go:norace
func (r *course) value(by, n int) int {
	if by >= len(r.drawn) {
		return 0
	}
	i := r.drawn[by]
	r.drawn[by]++
	if of := r.follow.Values[by]; i < len(of) && of[i] < n {
		return of[i]
	}
	return 0
}
