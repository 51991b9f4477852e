package replay

import "slices"

// Run is the result of running a schedule.
type Run struct {
	Fails     bool // in the same way as the first
	Decisions []Decision
	Steps     int     // operations
	Course    *Course // nil if unknown
}

// Course describes a schedule by which actor runs, instead of by the numbers of ways, whose meaning changes as soon as
// an earlier decision differs.
type Course struct {
	Turns  []Turn
	Values [][]int // the values chosen for each actor, in order
}

// Turn is a part of a schedule in which one actor runs, until it has been chosen To times since the schedule began; see
// search.Course.
type Turn = struct{ Actor, To int }

// Shrink makes a failing schedule smaller: fewer decisions that are not 0, as long as it fails in the same way.
//
// It first tries all schedules with at most one decision that is not 0, because one is often enough. Then it sets whole
// stretches of the failing schedule to 0 or removes them, halving their length down to one. That ends when no single
// decision can be removed, often with far more decisions than necessary. So it then joins turns of the same actor, and
// tries all schedules with two, three, ... decisions that are not 0, as long as that is fewer.
//
// Shrink runs schedules by calling try, and follow, which may be nil. Each search ends after search steps of the
// schedules, cutting after cut steps, and joining, with the cutting that follows it, after four times as many as a
// search. The result whole is false if cutting reached its limit: then some remaining decisions may not matter.
func Shrink(
	failed Run, try func(script []int) Run, follow func(c *Course) Run, cut, search int,
) (small []int, whole bool) {
	s := &shrinker{run: try, best: Script(failed.Decisions), steps: failed.Steps}
	s.fewest = Switches(s.best)
	if s.search(0, 1, search/5); s.spent > search/5 { // this was not all of them
		s.lastFirst = true
		s.search(0, 1, search)
	}
	s.spent = 0
	s.cut(cut)
	whole = s.spent < cut
	s.lastFirst = false
	if follow != nil && s.fewest > 1 && s.join(follow, 4*search) { // all schedules with one have been tried
		s.cut(4 * search)
		whole = s.spent < 4*search
	}
	s.search(2, s.fewest-1, search)
	return s.best, whole
}

// search tries all schedules with from to to decisions that are not 0, as long as that is fewer than in the best.
func (s *shrinker) search(from, to, most int) {
	s.spent = 0
	for n := from; n <= to && n < s.fewest && !s.deepen(nil, n, most); n++ {
	}
}

type shrinker struct {
	run    func(script []int) Run
	best   []int
	fewest int     // the switches of best
	steps  int     // of best
	course *Course // of best; nil if it is not known
	spent  int     // the steps of all runs

	lastFirst bool // see deepen
}

// runCost is added to the steps of each run, because beginning and ending a schedule takes as long as some steps.
const runCost = 20

// try runs a script. It reports whether it is the best so far.
func (s *shrinker) try(script []int) (r Run, better bool) {
	r = s.run(script)
	return r, s.better(&r)
}

// better counts the cost of a run. It reports whether it is the best so far.
func (s *shrinker) better(r *Run) bool {
	s.spent += r.Steps + runCost
	if !r.Fails {
		return false
	}
	small := Script(r.Decisions)
	n := Switches(small)
	if n > s.fewest || n == s.fewest && r.Steps >= s.steps {
		return false
	}
	s.best, s.fewest, s.steps, s.course = small, n, r.Steps, r.Course
	return true
}

// join simplifies the course of the best schedule by setting values to 0, and by moving the work of a turn to a later
// or an earlier turn of the same actor. It reports whether that made the script smaller.
func (s *shrinker) join(follow func(c *Course) Run, most int) (smaller bool) {
	s.spent = 0
	if s.course == nil {
		s.course = s.run(s.best).Course
	}
	now, fewest := s.course, s.fewest
	if now == nil {
		return false
	}
	try := func(turns []Turn, values [][]int) bool {
		r := follow(&Course{turns, values})
		smaller = s.better(&r) || smaller
		if !r.Fails || r.Course == nil {
			return false
		}
		n := Switches(Script(r.Decisions))
		if n > fewest || n == fewest && len(r.Course.Turns) >= len(now.Turns) {
			return false
		}
		now, fewest = r.Course, n
		return true
	}
	for again := true; again; {
		again = false
		for actor := range now.Values {
			for k := 0; actor < len(now.Values) && k < len(now.Values[actor]) && s.spent < most; k++ {
				if now.Values[actor][k] == 0 {
					continue
				}
				// Without this value, such as a fault, the others do what they did.
				values := slices.Clone(now.Values)
				values[actor] = slices.Clone(values[actor])
				values[actor][k] = 0
				again = try(now.Turns, values) || again
			}
		}
		for size := len(now.Turns) / 2; size > 0; size /= 2 {
			for at := 0; at < len(now.Turns) && s.spent < most; {
				// Without this turn, the actor does its work in its next one.
				if try(slices.Delete(slices.Clone(now.Turns), at, min(at+size, len(now.Turns))), now.Values) {
					again = true
				} else {
					at += size
				}
			}
		}
		for at := 0; at < len(now.Turns) && s.spent < most; {
			if turns := earlier(now.Turns, at); turns != nil && try(turns, now.Values) {
				again = true
			} else {
				at++
			}
		}
	}
	return smaller
}

// earlier returns the turns with the next turn of the actor of turn at joined to that one, or nil if there is none.
func earlier(turns []Turn, at int) []Turn {
	for i := at + 1; i < len(turns); i++ {
		if turns[i].Actor == turns[at].Actor {
			next := slices.Clone(turns)
			next[at].To = turns[i].To
			return slices.Delete(next, i, i+1)
		}
	}
	return nil
}

// cut sets stretches to 0 or removes them, until neither makes the script smaller. Removing a stretch moves the later
// decisions, which keep their meaning if a fiber does the same several times.
func (s *shrinker) cut(most int) {
	for smaller := true; smaller; {
		smaller = s.each(most, func(script []int, at, end int) []int {
			clear(script[at:end])
			return script
		})
		smaller = s.each(most, slices.Delete) || smaller
	}
}

// each tries the best script with one stretch changed, for stretches of all lengths, halving down to one. It reports
// whether that made the script smaller.
func (s *shrinker) each(most int, change func(script []int, at, end int) []int) (smaller bool) {
	for size := len(s.best); size > 0; size /= 2 {
		for at := 0; at < len(s.best) && s.spent < most; at += size {
			end := min(at+size, len(s.best))
			if Switches(s.best[at:end]) > 0 {
				_, better := s.try(change(slices.Clone(s.best), at, end))
				smaller = smaller || better
			}
		}
	}
	return smaller
}

// deepen tries a script, and then the script followed by up to more decisions that are not 0. It reports whether to
// stop. With lastFirst, the last way of a decision comes first, at all places. That way is the advance of time, if that
// is a choice, or a fault. So a long schedule that depends on time or faults is searched to its end.
func (s *shrinker) deepen(script []int, more, most int) bool {
	if s.spent > most {
		return true
	}
	r, better := s.try(script)
	if better || more == 0 {
		return better
	}
	if s.lastFirst {
		for at := len(script); at < len(r.Decisions); at++ {
			if n := r.Decisions[at].Ways; n > 1 && s.deepen(extended(script, at, n-1), more-1, most) {
				return true
			}
		}
	}
	for at := len(script); at < len(r.Decisions); at++ {
		for d := 1; d < r.Decisions[at].Ways; d++ {
			if s.deepen(extended(script, at, d), more-1, most) {
				return true
			}
		}
	}
	return false
}

// extended returns the script with zeros up to a place, and d there.
func extended(script []int, at, d int) []int {
	next := make([]int, at+1)
	copy(next, script)
	next[at] = d
	return next
}
