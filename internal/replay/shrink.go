package replay

import "slices"

// Run is the result of running a schedule.
type Run struct {
	Fails     bool // in the same way as the first
	Decisions []Decision
	Steps     int // operations
}

// Shrink makes a failing schedule smaller: fewer decisions that are not 0, as long as it fails in the same way.
//
// It first tries all schedules with at most one decision that is not 0, because one is often enough. Then it sets whole
// stretches of the failing schedule to 0 or takes them out, halving their length down to one. That ends where no single
// decision can go, often far from the fewest. So it then tries all schedules with two, three, ... decisions that are
// not 0, as long as that is fewer.
//
// It runs schedules by calling try. Each search ends after search steps of the schedules, and cutting after cut steps.
func Shrink(failed Run, try func(script []int) Run, cut, search int) []int {
	s := &shrinker{run: try, best: Script(failed.Decisions), steps: failed.Steps}
	s.fewest = Switches(s.best)
	s.search(0, 1, search/5)
	s.lastFirst = true
	s.search(0, 1, search)
	s.spent = 0
	s.cut(cut)
	s.lastFirst = false
	s.search(2, s.fewest-1, search)
	return s.best
}

// search tries all schedules with from to to decisions that are not 0, as long as that is fewer.
func (s *shrinker) search(from, to, most int) {
	s.spent = 0
	for n := from; n <= to && n < s.fewest && !s.deepen(nil, n, most); n++ {
	}
}

type shrinker struct {
	run    func(script []int) Run
	best   []int
	fewest int // switches of best
	steps  int // of best
	spent  int // steps of all runs

	lastFirst bool // see deepen
}

// runCost is added to the steps of each run: beginning and ending a schedule costs as much as some steps.
const runCost = 20

// try runs a script. It reports whether it is the best so far.
func (s *shrinker) try(script []int) (r Run, better bool) {
	r = s.run(script)
	s.spent += r.Steps + runCost
	if !r.Fails {
		return r, false
	}
	small := Script(r.Decisions)
	n := Switches(small)
	if n > s.fewest || n == s.fewest && r.Steps >= s.steps {
		return r, false
	}
	s.best, s.fewest, s.steps = small, n, r.Steps
	return r, true
}

// cut sets stretches to 0 or takes them out, until neither makes the script smaller. To take one out moves the
// decisions after it, which keeps what they mean where a fiber does the same thing several times.
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
// whether that made it smaller.
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
// stop. With lastFirst, the last way of a decision comes first, at all places: that is time going on, where that is a
// choice, or a fault. So a long schedule in which that is what matters is searched to its end.
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
