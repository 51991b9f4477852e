package sim

import (
	"math/bits"
)

// Strategy chooses how schedules go. It is asked wherever there is more than one way.
type Strategy interface {
	// Begin is called before each schedule, with its number from 0. It reports false if there is nothing left to explore.
	Begin(schedule int) bool
	// Choose returns a number below p.N. 0 changes least.
	Choose(p *Fork) int
	// Name is what -sim.strategy calls it.
	Name() string
}

// Fork is a place where a schedule can go more than one way.
type Fork struct {
	N    int  // ways
	GoOn bool // way 0 is that the fiber which runs goes on

	// After is true after an operation that did not wait: the fiber which runs has done it, and to go on is to do what
	// follows. It implies GoOn.
	After bool

	w *world
}

// Step is how many operations the schedule has done.
//
//go:norace
func (p *Fork) Step() int { return p.w.nsteps }

// Fiber is the number of the fiber that way i lets run, in the order of their making; negative if way i is something else: the clock moves, or
// a case of a select, a fault or a random number is chosen.
//
//go:norace
func (p *Fork) Fiber(i int) int {
	if p.w.ways[0] == value {
		return value
	}
	return int(p.w.ways[i])
}

// rng is splitmix64: small, and the same everywhere.
type rng uint64

//go:norace
func (r *rng) next() uint64 {
	*r += 0x9E3779B97F4A7C15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

//go:norace
func (r *rng) below(n int) int {
	hi, _ := bits.Mul64(r.next(), uint64(n))
	return int(hi)
}

// of is the generator of one schedule: a schedule can be run again by its number.
//
//go:norace
func (r *rng) of(seed uint64, schedule int) {
	*r = rng(seed ^ uint64(schedule)*0xD1342543DE82EF95)
	r.next()
}

// RoundRobin lets each fiber do one operation in turn. There is one such schedule.
func RoundRobin() Strategy { return new(roundRobin) }

type roundRobin struct{}

func (*roundRobin) Name() string            { return "roundrobin" }
func (*roundRobin) Begin(schedule int) bool { return schedule == 0 }

//go:norace
func (*roundRobin) Choose(p *Fork) int {
	if p.GoOn && !p.After {
		return 1
	}
	return 0
}

// Random takes each way with the same chance, wherever there is one.
func Random(seed uint64) Strategy { return &random{seed: seed} }

type random struct {
	seed uint64
	rng  rng
}

func (*random) Name() string { return "random" }

func (s *random) Begin(schedule int) bool {
	s.rng.of(s.seed, schedule)
	return true
}

//go:norace
func (s *random) Choose(p *Fork) int { return s.rng.below(p.N) }

// PCT gives fibers priorities at random and always lets the highest go on, but for depth-1 places, chosen at random, where the one that
// runs falls below all others. It finds what needs few switches at the right places, and starvation.
func PCT(seed uint64, depth int) Strategy { return &pct{seed: seed, depth: max(depth, 1), length: 32} }

type pct struct {
	seed   uint64
	depth  int
	length int // the longest schedule so far: changes are spread over it
	rng    rng
	prio   [1024]uint64
	change [16]int
	low    uint64
	asked  int
}

func (s *pct) Name() string { return "pct" }

func (s *pct) Begin(schedule int) bool {
	s.length = max(s.length, s.asked)
	s.asked = 0
	s.rng.of(s.seed, schedule)
	for i := range s.prio {
		s.prio[i] = s.rng.next() | 1<<63
	}
	for i := range min(s.depth-1, len(s.change)) {
		s.change[i] = s.rng.below(s.length)
	}
	s.low = 1 << 62
	return true
}

//go:norace
func (s *pct) Choose(p *Fork) int {
	if p.Fiber(0) == value {
		return s.rng.below(p.N)
	}
	if p.GoOn {
		for _, at := range s.change[:min(s.depth-1, len(s.change))] {
			if at == s.asked {
				s.low--
				s.prio[p.Fiber(0)%len(s.prio)] = s.low
			}
		}
	}
	s.asked++
	best, high := 0, uint64(0)
	for i := range p.N {
		f := p.Fiber(i)
		x := s.prio[(f+len(s.prio))%len(s.prio)] // the clock has a priority too
		if x > high {
			best, high = i, x
		}
	}
	return best
}

// Exhaustive goes through all orders of coir operations, and of the code between them, with at most bound preemptions:
// switches away from a fiber that could go on. A negative bound is none. Code between two operations is one step,
// unless there is a [Point] in it.
func Exhaustive(bound int) Strategy { return &exhaustive{bound: bound} }

type exhaustive struct {
	bound int
	path  []branch
	n     int // of path
	at    int
	used  int // preemptions
}

type branch struct{ chosen, of int }

func (*exhaustive) Name() string { return "exhaustive" }

// Begin goes on to the next path: the last decision that has another way takes it.
func (s *exhaustive) Begin(schedule int) bool {
	if schedule == 0 {
		s.n = 0
	} else {
		s.n = s.at
		for s.n > 0 && s.path[s.n-1].chosen+1 >= s.path[s.n-1].of {
			s.n--
		}
		if s.n == 0 {
			return false
		}
		s.path[s.n-1].chosen++
	}
	s.at, s.used = 0, 0
	return true
}

//go:norace
func (s *exhaustive) Choose(p *Fork) int {
	if s.at == s.n {
		of := p.N
		if p.GoOn && s.bound >= 0 && s.used >= s.bound {
			of = 1
		}
		if s.n == len(s.path) {
			s.path = doubled(s.path)
		}
		s.path[s.n] = branch{0, of}
		s.n++
	}
	d := s.path[s.at].chosen
	s.at++
	if p.GoOn && d > 0 {
		s.used++
	}
	return d
}

// Portfolio takes turns among strategies: neither finds everything that the others find.
func Portfolio(strategies ...Strategy) Strategy { return &portfolio{all: strategies} }

type portfolio struct {
	all  []Strategy
	done []bool
	turn []int
	cur  int
}

func (s *portfolio) Name() string { return "portfolio" }

func (s *portfolio) Begin(schedule int) bool {
	if schedule == 0 {
		s.done, s.turn, s.cur = make([]bool, len(s.all)), make([]int, len(s.all)), -1
	}
	for range s.all {
		s.cur = (s.cur + 1) % len(s.all)
		if i := s.cur; !s.done[i] {
			s.turn[i]++
			if s.all[i].Begin(s.turn[i] - 1) {
				return true
			}
			s.done[i] = true
		}
	}
	return false
}

//go:norace
func (s *portfolio) Choose(p *Fork) int { return s.all[s.cur].Choose(p) }
