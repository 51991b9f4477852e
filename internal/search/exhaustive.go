package search

// Exhaustive runs all schedules with at most bound preemptions, depth first. A preemption is a switch away from an
// actor that could continue. A negative bound means no bound.
func Exhaustive(bound int) *All { return &All{bound: bound} }

// All is the strategy [Exhaustive].
type All struct {
	bound int
	path  table[branch]
	at    int
	used  int // preemptions so far
	count int // schedules, without those that were run again
	ended bool
	cut   bool // a schedule was too long
}

type branch struct{ chosen, of int }

// mostDecisions is the largest number of decisions of a schedule that is varied.
const mostDecisions = 1 << 20

// Bound returns how many preemptions a schedule may have; negative means any number.
func (s *All) Bound() int { return s.bound }

// Name implements Strategy.
func (*All) Name() string { return "exhaustive" }

func (*All) steady() bool { return true }

// Complete reports whether all schedules have been run: Begin has returned false, and no schedule was too long.
func (s *All) Complete() bool { return s.ended && !s.cut }

// Count returns how many schedules have been run.
func (s *All) Count() int { return s.count }

// Begin prepares the next path: the last decision that has another way takes it.
func (s *All) Begin(schedule int) bool {
	if schedule == 0 {
		s.path.n, s.count, s.ended, s.cut = 0, 0, false, false
	}
	again, long := s.path.room(mostDecisions)
	s.cut = s.cut || long
	if schedule > 0 && !again {
		s.path.n = s.at
		for s.path.n > 0 && s.path.rows[s.path.n-1].chosen+1 >= s.path.rows[s.path.n-1].of {
			s.path.n--
		}
		if s.path.n == 0 {
			s.ended = true
			return false
		}
		s.path.rows[s.path.n-1].chosen++
	}
	if !again {
		s.count++
	}
	s.at, s.used = 0, 0
	return true
}

// Choose implements Strategy.
//
//go:norace
func (s *All) Choose(f *Fork) int {
	if s.at == s.path.n {
		of := f.N
		if f.Keep && s.bound >= 0 && s.used >= s.bound {
			of = 1
		}
		if s.path.n == len(s.path.rows) {
			s.path.full = true
			return 0
		}
		s.path.rows[s.path.n] = branch{0, of}
		s.path.n++
	}
	d := s.path.rows[s.at].chosen
	s.at++
	if f.Keep && d > 0 {
		s.used++
	}
	return d
}
