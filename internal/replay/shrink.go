package replay

import "slices"

// Run is the result of running a schedule.
type Run struct {
	Fails     bool // in the same way as the first
	Decisions []Decision
	Steps     int // operations
}

// Shrink makes a failing schedule smaller: fewer decisions that are not 0, as long as it fails in the same way. First
// it sets whole stretches to 0, halving their length down to one. That ends where no single decision can be set to 0,
// often far from the fewest. So it then tries all schedules with none, one, two, ... decisions that are not 0, as long
// as that is fewer.
//
// It runs schedules by calling try. The first part ends after cut steps of the schedules, and the second after search
// steps.
func Shrink(failed Run, try func(script []int) Run, cut, search int) []int {
	s := &shrinker{run: try, best: Script(failed.Decisions), steps: failed.Steps}
	s.fewest = Switches(s.best)
	s.cut(cut)
	s.spent = 0
	for n := 0; n < s.fewest && !s.deepen(nil, n, search); n++ {
	}
	return s.best
}

type shrinker struct {
	run    func(script []int) Run
	best   []int
	fewest int // switches of best
	steps  int // of best
	spent  int // steps of all runs
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

func (s *shrinker) cut(most int) {
	for size := len(s.best); size > 0; size /= 2 {
		for at := 0; at < len(s.best) && s.spent < most; at += size {
			end := min(at+size, len(s.best))
			if Switches(s.best[at:end]) > 0 {
				script := slices.Clone(s.best)
				clear(script[at:end])
				s.try(script)
			}
		}
	}
}

// deepen tries a script, and then the script followed by up to more decisions that are not 0. It reports whether to
// stop.
func (s *shrinker) deepen(script []int, more, most int) bool {
	if s.spent > most {
		return true
	}
	r, better := s.try(script)
	if better || more == 0 {
		return better
	}
	for at := len(script); at < len(r.Decisions); at++ {
		for d := 1; d < r.Decisions[at].Ways; d++ {
			next := make([]int, at+1)
			copy(next, script)
			next[at] = d
			if s.deepen(next, more-1, most) {
				return true
			}
		}
	}
	return false
}
