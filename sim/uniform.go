package sim

// A coin at each point is far from fair to schedules: a fiber with one operation left and one with a hundred are chosen
// alike, so the short one is all but always done early, and what needs it late is hardly ever seen. If each way is
// taken in proportion to how much comes after it, every interleaving has the same chance. How much that is shows in
// earlier schedules of the same program: for each fiber how often it was let go on until there was a choice for the
// last time, and what the fibers that it starts do. It is exact for fibers that start each other and do always the
// same, and a good guess for others.

// Uniform takes each way in proportion to the number of operations that are expected behind it, so that every interleaving has
// about the same chance. It learns these numbers from the schedules before.
func Uniform(seed uint64) Strategy { return &uniform{seed: seed} }

// uniformFibers is how many fibers are told apart; the others count as if they had one operation left.
const uniformFibers = 1024

type uniform struct {
	seed uint64
	rng  rng
	w    *world

	// Of earlier schedules. Index 0 is the clock; fibers follow in the order of their making.
	most   [uniformFibers]int32 // moves of the fiber, up to its last choice, the most in any schedule
	parent [uniformFibers]int32 // who started it, when it was last seen
	next   [uniformFibers]int32 // the same with this schedule
	known  int

	// Of this one.
	ticks int32 // moves of the clock that were chosen
	seen  int
	last  int32 // the one chosen last
	after [uniformFibers]int32
}

func (*uniform) Name() string { return "uniform" }

func (s *uniform) Begin(schedule int) bool {
	s.rng.of(s.seed, schedule)
	s.most = s.next
	s.ticks, s.seen, s.last = 0, 1, 1
	return true
}

// Choose implements Strategy.
//
//go:norace
func (s *uniform) Choose(p *Fork) int {
	if p.Fiber(0) == value {
		return s.rng.below(p.N)
	}
	s.w = p.w
	s.meet(p)
	s.weigh()
	sum := 0
	for i := range p.N {
		sum += s.weight(p.Fiber(i))
	}
	x := s.rng.below(sum)
	i := 0
	for ; i < p.N-1; i++ {
		if x -= s.weight(p.Fiber(i)); x < 0 {
			break
		}
	}
	if f := slot(p.Fiber(i)); f < uniformFibers {
		s.next[f] = max(s.next[f], s.done(f)+1)
		s.last = int32(f)
		if f == 0 {
			s.ticks++
		}
	}
	return i
}

// done is how often the fiber in a slot has been let go on in this schedule, whether there was a choice or not.
//
//go:norace
func (s *uniform) done(slot int) int32 {
	switch {
	case slot == 0:
		return s.ticks
	case s.w == nil || slot > s.w.nfibers:
		return 0
	}
	return s.w.fibers[slot-1].moves
}

// slot is where a fiber, or the clock, has its numbers.
//
//go:norace
func slot(f int) int { return max(f+1, 0) }

// meet notes fibers that are new: whoever was chosen last has started them.
//
//go:norace
func (s *uniform) meet(p *Fork) {
	for i := range p.N {
		f := slot(p.Fiber(i))
		for f < uniformFibers && s.seen <= f {
			s.parent[s.seen] = s.last
			s.seen++
		}
	}
	s.known = max(s.known, s.seen)
}

// weigh adds what the fibers that are not there yet are expected to do to those who will start them.
//
//go:norace
func (s *uniform) weigh() {
	for f := range s.known {
		s.after[f] = 0
	}
	for f := s.known - 1; f >= s.seen; f-- {
		if up := s.parent[f]; int(up) < f {
			s.after[up] += s.after[f] + s.most[f]
		}
	}
}

//go:norace
func (s *uniform) weight(fiber int) int {
	f := slot(fiber)
	if f >= uniformFibers {
		return 1
	}
	return max(1, int(max(s.most[f]-s.done(f), 0)+s.after[f]))
}
