package search

// Plain lets the running actor continue as long as it can. It has one schedule, the plain one.
func Plain() Strategy { return new(plain) }

// Methods have pointer receivers because the compiler would wrap others, and the race detector sees the wrapper.
type plain struct{}

func (*plain) Name() string            { return "plain" }
func (*plain) Begin(schedule int) bool { return schedule == 0 }
func (*plain) steady() bool            { return true }

//go:norace
func (*plain) Choose(*Fork) int { return 0 }

// RoundRobin lets the actors take turns of one operation each. It has one schedule.
func RoundRobin() Strategy { return new(roundRobin) }

type roundRobin struct{}

func (*roundRobin) Name() string            { return "roundrobin" }
func (*roundRobin) Begin(schedule int) bool { return schedule == 0 }
func (*roundRobin) steady() bool            { return true }

//go:norace
func (*roundRobin) Choose(f *Fork) int {
	if f.Keep && !f.After {
		return 1
	}
	return 0
}

// Script makes the given decisions. After those it takes way 0, or the way that Rest chooses.
type Script struct {
	Ways []int
	Rest Strategy
	at   int
}

// Name implements Strategy.
func (*Script) Name() string { return "script" }

// Begin implements Strategy.
func (s *Script) Begin(schedule int) bool {
	s.at = 0
	return schedule == 0 && (s.Rest == nil || s.Rest.Begin(0))
}

func (*Script) steady() bool { return true }

// Choose implements Strategy. Its result may be too large if the program has changed.
//
//go:norace
func (s *Script) Choose(f *Fork) int {
	if s.at < len(s.Ways) {
		s.at++
		return s.Ways[s.at-1]
	}
	if s.Rest == nil {
		return 0
	}
	return s.Rest.Choose(f)
}

// Rule returns the strategy of a rule by which a schedule continues after a script; see replay.Twin. Rule 0 is Plain,
// rule 1 is RoundRobin, and all others are random, each different.
func Rule(rule int) Strategy {
	switch rule {
	case 0:
		return Plain()
	case 1:
		return RoundRobin()
	}
	return Random(uint64(rule), []int{90, 50, 0}[rule%3])
}

// Random takes each way with the same probability, but lets the running actor continue with a probability of at least
// keep percent.
func Random(seed uint64, keep int) Strategy { return &random{seed: seed, keep: keep} }

type random struct {
	seed   uint64
	keep   int
	rng    RNG
	number int // of the schedule
}

func (*random) Name() string { return "random" }

func (s *random) Begin(schedule int) bool {
	s.number = schedule
	s.rng.Of(s.seed, schedule)
	return true
}

//go:norace
func (s *random) Choose(f *Fork) int {
	if s.keep > 0 && f.Keep && s.rng.Below(100) < s.keep {
		return 0
	}
	return s.rng.Below(f.N)
}

// PCT gives actors random priorities and always lets the actor with the highest continue, except at depth-1 random
// places, where the running actor falls below all others. It finds bugs that need few switches at the right places, and
// starvation.
func PCT(seed uint64, depth int) Strategy { return &pct{seed: seed, places: newPlaces(depth - 1)} }

type pct struct {
	seed   uint64
	rng    RNG
	places places
	prio   [1024]uint64
	low    uint64
	number int // of the schedule
}

func (s *pct) Name() string { return "pct" }

func (s *pct) Begin(schedule int) bool {
	s.rng.Of(s.seed, schedule)
	for i := range s.prio {
		s.prio[i] = s.rng.Next() | 1<<63
	}
	s.places.draw(&s.rng, schedule == s.number)
	s.number, s.low = schedule, 1<<62
	return true
}

//go:norace
func (s *pct) Choose(f *Fork) int {
	if s.places.isLong() || f.World.Actor(0) == Value {
		return s.rng.Below(f.N)
	}
	if f.Yields {
		s.lower(f.World.Actor(f.N - 1))
	}
	if s.places.meet(f) {
		s.lower(f.World.Actor(0))
	}
	best, high := 0, uint64(0)
	for i := range f.N {
		a := f.World.Actor(i)
		x := s.prio[(a+len(s.prio))%len(s.prio)] // the clock has a priority too
		if x > high {
			best, high = i, x
		}
	}
	return best
}

// lower gives an actor the lowest priority.
//
//go:norace
func (s *pct) lower(actor int) {
	s.low--
	s.prio[actor%len(s.prio)] = s.low
}

// Delay is like Random, but stops the running actor at each of n random places, until no other actor can continue, or
// until one yields. It finds bugs that need an actor to stop at one place while others do much.
func Delay(seed uint64, keep, n int) Strategy {
	return &delay{random: random{seed: seed, keep: keep}, places: newPlaces(n)}
}

type delay struct {
	random
	places  places
	stopped [1024]bool
}

func (*delay) Name() string { return "delay" }

func (s *delay) Begin(schedule int) bool {
	again := schedule == s.number
	s.random.Begin(schedule)
	s.places.draw(&s.rng, again)
	s.stopped = [1024]bool{}
	return true
}

//go:norace
func (s *delay) Choose(f *Fork) int {
	if s.places.isLong() || f.World.Actor(0) == Value {
		return s.rng.Below(f.N)
	}
	if f.Yields {
		for i := range f.N {
			s.stop(f.World.Actor(i), false)
		}
	}
	if s.places.meet(f) {
		s.stop(f.World.Actor(0), true)
	}
	ways, actors := 0, 0 // those that are not stopped
	for i := range f.N {
		if a := f.World.Actor(i); !s.isStopped(a) {
			if ways++; a >= 0 {
				actors++
			}
		}
	}
	if ways == f.N {
		return s.random.Choose(f)
	}
	if actors == 0 {
		k := s.rng.Below(f.N)
		s.stop(f.World.Actor(k), false)
		return k
	}
	if f.Keep && !s.isStopped(f.World.Actor(0)) && s.rng.Below(100) < s.keep {
		return 0
	}
	i := 0
	for k := s.rng.Below(ways); ; i++ {
		if !s.isStopped(f.World.Actor(i)) {
			if k == 0 {
				return i
			}
			k--
		}
	}
}

//go:norace
func (s *delay) stop(actor int, on bool) {
	if actor >= 0 {
		s.stopped[actor%len(s.stopped)] = on
	}
}

//go:norace
func (s *delay) isStopped(actor int) bool { return actor >= 0 && s.stopped[actor%len(s.stopped)] }

// places are random places of a schedule. Only forks at which the running actor could continue count: at others it has
// stopped anyway, and programs with many goroutines that wait for each other, such as servers, have many of these.
//
// If the sites are known, a place is a random visit to a random site. So each line of the program is as likely as any
// other, however often it is visited. In a server, most forks are inside packages such as net/http, and so belong to
// the few sites that call these packages.
type places struct {
	n      int
	at     [16]int
	length int // of the longest schedule so far: places are spread over it
	met    int // forks that count
	asked  int // all forks

	visits     [16]visit
	drawn      bool             // the places are visits, not at
	most, seen [MostSites]int32 // how often each site was visited: the most of any schedule, and in this schedule
	end        int              // all sites that were visited are below it
}

// visit is the nth visit to a site, from 0.
type visit struct {
	site int
	nth  int32
}

func newPlaces(n int) places { return places{n: min(max(n, 0), 16), length: 32} }

// An actor that polls could have the highest priority, or poll for what an actor does that is stopped. So a schedule is
// random after fairAfter forks, and such a schedule does not count when places are drawn.
const fairAfter = 20000

// draw draws the places of the next schedule, or of the same one again.
func (p *places) draw(rng *RNG, again bool) {
	learns := !p.isLong() && !again
	if learns {
		p.length = max(p.length, p.met)
	}
	p.met, p.asked = 0, 0
	for i := range p.n {
		p.at[i] = rng.Below(p.length)
	}
	var known []int
	for i := range p.end {
		if learns {
			p.most[i] = max(p.most[i], p.seen[i])
		}
		if p.seen[i] = 0; p.most[i] > 0 {
			known = append(known, i)
		}
	}
	if p.drawn = len(known) > 0 && known[len(known)-1] > 0; !p.drawn {
		return
	}
	for i := range p.n {
		site := known[rng.Below(len(known))]
		p.visits[i] = visit{site, int32(rng.Below(int(p.most[site])))}
	}
}

//go:norace
func (p *places) isLong() bool { return p.asked >= fairAfter }

// meet counts a fork, and reports whether it is one of the places.
//
//go:norace
func (p *places) meet(f *Fork) (is bool) {
	p.asked++
	if !f.Keep {
		return false
	}
	site := f.World.Site()
	v := visit{site, p.seen[site]}
	for i := range p.n {
		is = is || p.drawn && p.visits[i] == v || !p.drawn && p.at[i] == p.met
	}
	p.seen[site]++
	p.end = max(p.end, site+1)
	p.met++
	return is
}

// Turns takes turns among strategies, of any type.
type Turns[S interface{ Begin(schedule int) bool }] struct {
	All  []S
	done []bool
	turn []int
	cur  int
}

// Begin begins the next schedule of the strategy whose turn it is. It returns false if no strategy has a schedule left.
func (t *Turns[S]) Begin(schedule int) bool {
	if schedule == 0 {
		t.done, t.turn, t.cur = make([]bool, len(t.All)), make([]int, len(t.All)), -1
	}
	for range t.All {
		t.cur = (t.cur + 1) % len(t.All)
		if i := t.cur; !t.done[i] {
			t.turn[i]++
			if t.All[i].Begin(t.turn[i] - 1) {
				return true
			}
			t.done[i] = true
		}
	}
	return false
}

// Current returns the strategy whose turn it is.
//
//go:norace
func (t *Turns[S]) Current() S { return t.All[t.cur] }

// Portfolio takes turns among strategies, because no single strategy finds every bug.
func Portfolio(strategies ...Strategy) Strategy {
	return &portfolio{Turns[Strategy]{All: strategies}}
}

type portfolio struct{ Turns[Strategy] }

func (s *portfolio) Name() string { return "portfolio" }
func (s *portfolio) steady() bool { return Steady(s.Current()) }

//go:norace
func (s *portfolio) Choose(f *Fork) int { return s.Current().Choose(f) }
