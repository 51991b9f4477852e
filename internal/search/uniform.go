package search

// A coin toss at each point does not give schedules the same probability. An actor with one operation left is chosen as
// often as one with a hundred. So the short one almost always ends early, and bugs that need it late are rarely found.
// If each way is taken in proportion to the number of operations after it, every interleaving has the same probability.
// Earlier schedules of the same program show that number: how often each actor was chosen up to its last choice, and
// the operations of the actors that it starts. The number is exact for actors that start each other and always behave
// the same, and a good guess for others.

// Uniform takes each way in proportion to the number of operations expected after it, so that every interleaving has
// about the same probability. It learns these numbers from earlier schedules.
func Uniform(seed uint64) Strategy { return &uniform{seed: seed} }

// uniformActors is the number of actors that are counted; others are assumed to have one operation left.
const uniformActors = 1024

type uniform struct {
	seed uint64
	rng  RNG
	w    World

	// From earlier schedules. Index 0 is the clock; actors follow in the order of their creation.
	most   [uniformActors]int32 // the most moves of the actor in any schedule, up to its last choice
	parent [uniformActors]int32 // the actor that started it, when it was last seen
	next   [uniformActors]int32 // like most, including this schedule
	known  int

	// From this schedule.
	ticks int32 // moves of the clock that were chosen
	seen  int
	last  int32 // the actor chosen last
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

// done returns how often the actor in a slot was chosen in this schedule, whether there was a choice or not.
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

// slot returns the index of an actor or of the clock.
//
//go:norace
func slot(actor int) int { return max(actor+1, 0) }

// meet records new actors: the actor chosen last has started them.
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

// weigh adds the expected operations of future actors to the actors that will start them.
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
