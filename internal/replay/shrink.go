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
	Values [][]int // the values chosen, in order: those of list i of search.World.Running are Values[i+1]
}

// Turn is a part of a schedule in which one actor runs, until it has been chosen To times since the schedule began; see
// search.Course.
type Turn = struct{ Actor, To int }

// Shrink makes a failing schedule smaller: fewer decisions that are not 0, as long as it fails in the same way.
//
// It first tries all schedules with at most one decision that is not 0, because in a small program one is often enough.
// That a schedule has a fault, and that the fault happens, count as one.
// Then it sets whole stretches of the failing schedule to 0 or removes them, halving their length down to one. That
// ends when no single decision can be removed, often with far more decisions than necessary. So it then joins turns of
// the same actor, and cuts again. At last it tries all schedules with two, three, ... decisions that are not 0, as long
// as that is fewer.
//
// Shrink runs schedules by calling try, and follow, which may be nil. Each part ends after some steps of the schedules:
// cutting after cut steps, joining and the cutting that follows it after four times search, and the last search after
// search. In a large program, the searches would use all their steps and find nothing. So the first one ends after a
// fifth of search, and so does the last one if it could not try all schedules with two decisions anyway. If the first
// one could not even try all those with one, the last one tries those in another order, for a tenth of search. The
// result whole is false if cutting reached its limit: then some remaining decisions may not matter.
func Shrink(
	failed Run, try func(script []int) Run, follow func(c *Course) Run, cut, search int,
) (small []int, whole bool) {
	s := &shrinker{run: try, best: Script(failed.Decisions), steps: failed.Steps, tried: map[uint64]bool{}}
	s.fewest = Switches(s.best)
	s.search(0, 1, search/5)
	one, runs := s.spent, s.runs
	s.spent = 0
	s.cut(cut)
	whole = s.spent < cut
	if follow != nil && s.fewest > 1 {
		s.join(follow, 4*search)
		s.cut(4 * search)
		whole = s.spent < 4*search
	}
	switch {
	case one > search/5: // these were not all schedules with one
		s.lastFirst = true
		s.search(0, 1, search/10)
	case one*runs/2 > search:
		s.search(2, s.fewest-1, search/5)
	default:
		s.search(2, s.fewest-1, search)
	}
	return s.best, whole
}

// search tries all schedules with from to to decisions that are not 0, as long as that is fewer than in the best.
func (s *shrinker) search(from, to, most int) {
	s.spent, s.runs = 0, 0
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
	runs   int
	tried  map[uint64]bool // hashes of what cut and join have tried, which would end in the same way again

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
	s.runs++
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
// or an earlier turn of the same actor. It tries many at a time first, down from all: each of two faults may need the
// other one, or the turns may only be there for the sake of a value.
func (s *shrinker) join(follow func(c *Course) Run, most int) {
	s.spent = 0
	if s.course == nil {
		s.course = s.run(s.best).Course
	}
	now, fewest := s.course, s.fewest
	if now == nil {
		return
	}
	try := func(turns []Turn, values [][]int) bool {
		if !s.isNew(hashCourse(turns, values)) {
			return false
		}
		r := follow(&Course{turns, values})
		s.better(&r)
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
		for size := len(chosen(now.Values)); size > 0; size /= 2 {
			for at := 0; s.spent < most; {
				all := chosen(now.Values)
				if at >= len(all) {
					break
				}
				// Without these values, such as faults, the others do what they did.
				if try(now.Turns, without(now.Values, all[at:min(at+size, len(all))])) {
					again = true
				} else {
					at += size
				}
			}
		}
		again = s.pairs(most, func() []spot { return chosen(now.Values) }, func(a, b spot) bool {
			return try(now.Turns, without(without(now.Values, []spot{a}), []spot{b}))
		}) || again
		for size := len(now.Turns); size > 0; size /= 2 {
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
}

// spot is the place of a value: its list, and its index there.
type spot struct{ list, at int }

// mostPaired is the most values that are not 0 of which pairs are removed.
const mostPaired = 12

// pairs calls remove for each pair of values that are not 0, if there are few, until one can be removed. It then begins
// again with those that are left. It reports whether a pair was removed.
func (s *shrinker) pairs(most int, left func() []spot, remove func(a, b spot) bool) (removed bool) {
	for again := true; again; {
		again = false
		all := left()
		if len(all) > mostPaired {
			return removed
		}
		for k := 0; k < len(all) && !again; k++ {
			for n := k + 1; n < len(all) && !again && s.spent < most; n++ {
				again = remove(all[k], all[n])
			}
		}
		removed = removed || again
	}
	return removed
}

// chosen returns the places of the values that are not 0.
func chosen(values [][]int) (all []spot) {
	for list, of := range values {
		for at, v := range of {
			if v != 0 {
				all = append(all, spot{list, at})
			}
		}
	}
	return all
}

// without returns the values, with 0 at some places.
func without(values [][]int, spots []spot) [][]int {
	values = slices.Clone(values)
	for k, p := range spots {
		if k == 0 || spots[k-1].list != p.list {
			values[p.list] = slices.Clone(values[p.list])
		}
		values[p.list][p.at] = 0
	}
	return values
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
			if Switches(s.best[at:end]) == 0 {
				continue
			}
			// Short stretches often contain the same decision.
			if script := change(slices.Clone(s.best), at, end); s.isNew(hashScript(script)) {
				_, better := s.try(script)
				smaller = smaller || better
			}
		}
	}
	return smaller
}

// isNew reports whether something with a hash has not been tried before.
func (s *shrinker) isNew(hash uint64) bool {
	before := s.tried[hash]
	s.tried[hash] = true
	return !before
}

// hash is an FNV-1a hash of numbers.
type hash uint64

const (
	noHash   hash = 14695981039346656037
	fnvPrime hash = 1099511628211
)

func (h hash) add(n int) hash { return (h ^ hash(n)) * fnvPrime }

// hashScript returns a hash of a script that does not depend on zeros at the end.
func hashScript(script []int) uint64 {
	h := noHash
	for i, d := range script {
		if d != 0 {
			h = h.add(i).add(d)
		}
	}
	return uint64(h)
}

func hashCourse(turns []Turn, values [][]int) uint64 {
	h := noHash.add(-1)
	for _, t := range turns {
		h = h.add(t.Actor).add(t.To)
	}
	for _, of := range values {
		h = h.add(-1)
		for _, v := range of {
			h = h.add(v)
		}
	}
	return uint64(h)
}

// deepen tries a script, and then the script followed by up to more decisions that are not 0. It reports whether to
// stop. With lastFirst, the last way of a decision comes first, at all places. That way is the advance of time, if that
// is a choice, or a fault. So a long schedule that depends on time or faults is searched to its end.
func (s *shrinker) deepen(script []int, more, most int) bool {
	if s.spent > most {
		return true
	}
	r, better := s.try(script)
	if better {
		return true
	}
	if more == 0 {
		s.strike(script, r.Decisions, most)
		return false
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

// strike tries a script followed by one more decision about a fault, if its last decision is about a fault too: that a
// schedule has a fault changes nothing until the fault happens. So the two count as one. If that fails, a schedule with
// fewer decisions may fail too, so the search goes on.
func (s *shrinker) strike(script []int, ran []Decision, most int) {
	if len(script) == 0 || len(script) > len(ran) || !ran[len(script)-1].Fault {
		return
	}
	n := Switches(script) + 1
	for at := len(script); at < len(ran) && n < s.fewest && s.spent <= most; at++ {
		if ran[at].Fault {
			s.try(extended(script, at, 1))
		}
	}
}

// extended returns the script with zeros up to a place, and d there.
func extended(script []int, at, d int) []int {
	next := make([]int, at+1)
	copy(next, script)
	next[at] = d
	return next
}
