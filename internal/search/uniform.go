package search

// A coin at each point is far from fair to schedules: an actor with one operation left and one with a hundred are
// chosen alike, so the short one is all but always done early, and what needs it late is hardly ever seen. If each way
// is taken in proportion to how much comes after it, every interleaving has the same chance. How much that is shows in
// earlier schedules of the same program: for each actor how often it was let go on until there was a choice for the
// last time, and what the actors that it starts do. It is exact for actors that start each other and always do the
// same, and a good guess for others.

// Uniform takes each way in proportion to the number of operations that are expected behind it, so that every
// interleaving has about the same chance. It learns these numbers from the schedules before.
func Uniform(seed uint64) Strategy { return &uniform{seed: seed} }

// uniformActors is how many actors are told apart; the others count as if they had one operation left.
const uniformActors = 1024

type uniform struct {
	seed uint64
	rng  RNG
	w    World

	// Of earlier schedules. Index 0 is the clock; actors follow in the order of their making.
	most   [uniformActors]int32 // moves of the actor, up to its last choice, the most in any schedule
	parent [uniformActors]int32 // who started it, when it was last seen
	next   [uniformActors]int32 // the same with this schedule
	known  int

	// Of this one.
	ticks int32 // moves of the clock that were chosen
	seen  int
	last  int32 // the one chosen last
	after [uniformActors]int32
}

func (*uniform) Name() string { return "uniform" }

func (s *uniform) Begin(schedule int) bool {
	s.rng.Of(s.seed, schedule)
	s.most = s.next
	s.ticks, s.seen, s.last = 0, 1, 1
	return true
}

// Choose implements Strategy.
//
//go:norace
func (s *uniform) Choose(f *Fork) int {
	if f.World.Actor(0) == Value {
		return s.rng.Below(f.N)
	}
	s.w = f.World
	s.meet(f)
	s.weigh()
	sum := 0
	for i := range f.N {
		sum += s.weight(f.World.Actor(i))
	}
	x := s.rng.Below(sum)
	i := 0
	for ; i < f.N-1; i++ {
		if x -= s.weight(f.World.Actor(i)); x < 0 {
			break
		}
	}
	if a := slot(f.World.Actor(i)); a < uniformActors {
		s.next[a] = max(s.next[a], s.done(a)+1)
		s.last = int32(a)
		if a == 0 {
			s.ticks++
		}
	}
	return i
}

// done is how often the actor in a slot has been let go on in this schedule, whether there was a choice or not.
//
//go:norace
func (s *uniform) done(slot int) int32 {
	switch {
	case slot == 0:
		return s.ticks
	case s.w == nil || slot > s.w.Actors():
		return 0
	}
	return s.w.Moves(slot - 1)
}

// slot is where an actor, or the clock, has its numbers.
//
//go:norace
func slot(actor int) int { return max(actor+1, 0) }

// meet notes actors that are new: the one that was chosen last has started them.
//
//go:norace
func (s *uniform) meet(f *Fork) {
	for i := range f.N {
		a := slot(f.World.Actor(i))
		for a < uniformActors && s.seen <= a {
			s.parent[s.seen] = s.last
			s.seen++
		}
	}
	s.known = max(s.known, s.seen)
}

// weigh adds what the actors that are not there yet are expected to do to those that will start them.
//
//go:norace
func (s *uniform) weigh() {
	for a := range s.known {
		s.after[a] = 0
	}
	for a := s.known - 1; a >= s.seen; a-- {
		if up := s.parent[a]; int(up) < a {
			s.after[up] += s.after[a] + s.most[a]
		}
	}
}

//go:norace
func (s *uniform) weight(actor int) int {
	a := slot(actor)
	if a >= uniformActors {
		return 1
	}
	return max(1, int(max(s.most[a]-s.done(a), 0)+s.after[a]))
}
