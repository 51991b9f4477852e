package search

// Turn is a part of a schedule in which one actor runs, until it has been chosen To times since the schedule began. The
// actor may also be Clock.
type Turn = struct{ Actor, To int }

// Course is a strategy that describes a schedule by its turns: which actor runs, and until when. A script is a list of
// numbered decisions: if one of them changes, the decisions after it mean something else. Turns keep their meaning. A
// Course records the turns of each schedule, and can make a schedule follow given turns.
type Course struct {
	script Script

	follows bool // follows turns, not script
	turns   []Turn
	values  [][]int // the values to choose, in order; those of list i (see World.Running) are values[i+1]
	at      int     // the index of the first turn that has not ended
	used    []int   // number of values used, of each list

	ran    table[Turn]
	chosen table[value]
	clocks int // how often time was chosen to advance
}

// value is a chosen value.
type value struct{ list, way int }

// mostTurns limits the number of recorded turns.
const mostTurns = 1 << 20

// Script makes the next schedule use the given decisions.
func (c *Course) Script(ways []int) { c.begin(false, ways, nil, nil) }

// Follow makes the next schedule use the given turns and values.
func (c *Course) Follow(turns []Turn, values [][]int) { c.begin(true, nil, turns, values) }

func (c *Course) begin(follows bool, ways []int, turns []Turn, values [][]int) {
	c.script = Script{Ways: ways}
	c.follows, c.turns, c.values, c.at, c.used = follows, turns, values, 0, make([]int, len(values))
	c.ran.room(mostTurns)
	c.chosen.room(mostTurns)
	c.ran.n, c.chosen.n, c.clocks = 0, 0, 0
}

// Ran returns the turns and values of the last schedule. It returns false if there was no room for them.
func (c *Course) Ran() (turns []Turn, values [][]int, ok bool) {
	turns = append(turns, c.ran.rows[:c.ran.n]...)
	for _, v := range c.chosen.rows[:c.chosen.n] {
		for len(values) <= v.list+1 {
			values = append(values, nil)
		}
		values[v.list+1] = append(values[v.list+1], v.way)
	}
	return turns, values, !c.ran.full && !c.chosen.full
}

// Name implements Strategy.
func (*Course) Name() string { return "course" }

// Begin implements Strategy.
func (*Course) Begin(schedule int) bool { return schedule == 0 }

func (*Course) steady() bool { return true }

// Choose implements Strategy. Like that of a Script, its result may be too large.
//
//go:norace
func (c *Course) Choose(f *Fork) int {
	now := max(f.World.Running(), -1)
	way := 0
	if f.World.Actor(0) == Value {
		if way = c.value(f, now); way < f.N {
			c.chosen.add(value{now, way})
		}
		return way
	}
	c.saw(f.World, now)
	if c.follows {
		way = c.next(f)
	} else {
		way = c.script.Choose(f)
	}
	if way >= f.N {
		return way
	}
	if to := f.World.Actor(way); to == Clock {
		c.clocks++
		c.turn(Clock, c.clocks)
	} else {
		c.turn(to, int(f.World.Moves(to))+1)
	}
	return way
}

// saw records the progress of the actors that have run since the last decision.
//
//go:norace
func (c *Course) saw(w World, now int) {
	if c.ran.n > 0 {
		if last := c.ran.rows[c.ran.n-1].Actor; last >= 0 {
			c.turn(last, int(w.Moves(last)))
		}
	}
	if now >= 0 && w.Moves(now) > 0 {
		c.turn(now, int(w.Moves(now)))
	}
}

// turn records that an actor has been chosen for the to'th time.
//
//go:norace
func (c *Course) turn(actor, to int) {
	if n := c.ran.n; n > 0 && c.ran.rows[n-1].Actor == actor {
		c.ran.rows[n-1].To = max(c.ran.rows[n-1].To, to) // an actor that has ended may be chosen 0 times
		return
	}
	c.ran.add(Turn{actor, to})
}

// next returns the way of the actor whose turn it is. If that actor cannot run, it returns the way of the actor of the
// next turn.
//
//go:norace
func (c *Course) next(f *Fork) int {
	for c.at < len(c.turns) && c.done(f.World, c.turns[c.at]) {
		c.at++
	}
	if c.at == len(c.turns) {
		return 0
	}
	for i := c.at; i < min(len(c.turns), c.at+lookAhead); i++ {
		if c.done(f.World, c.turns[i]) {
			continue
		}
		for k := range f.N {
			if f.World.Actor(k) == c.turns[i].Actor {
				return k
			}
		}
	}
	c.at++ // that actor may never run
	return 0
}

// lookAhead limits how many turns a decision examines.
const lookAhead = 64

// done reports whether a turn has ended.
//
//go:norace
func (c *Course) done(w World, t Turn) bool {
	if t.Actor == Clock {
		return c.clocks >= t.To
	}
	return t.Actor < w.Actors() && int(w.Moves(t.Actor)) >= t.To
}

// value returns the next value of a list.
//
//go:norace
func (c *Course) value(f *Fork, list int) int {
	if !c.follows {
		return c.script.Choose(f)
	}
	if list+1 >= len(c.used) {
		return 0
	}
	i, of := c.used[list+1], c.values[list+1]
	c.used[list+1]++
	if i < len(of) && of[i] < f.N {
		return of[i]
	}
	return 0
}
