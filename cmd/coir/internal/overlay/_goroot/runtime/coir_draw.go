package runtime

import (
	"internal/coir"
	_ "unsafe" // for go:linkname
)

// coirDraws has what the program draws at random, which is the same in each run of a schedule: it depends only on the
// seed, and on how often the program has drawn.
//
// A goroutine without points has a generator of its own. It may fill a cache that the collector has emptied, such as
// that of crypto/tls, and what other goroutines draw must not depend on it.
type coirDraws struct {
	seed  uint64
	rand  uint64 // the state of the generator, never 0
	quiet uint64 // of that of goroutines without points

	timerStep uint64 // the step in which a timer was last ordered
	ordered   uint64 // timers that were ordered in it
}

// stateOf returns the state of the generator of gp.
func (d *coirDraws) stateOf(gp *g) *uint64 {
	x := &d.rand
	if gp.coir.quiet != 0 {
		x = &d.quiet
	}
	*x |= 1
	return x
}

func coirNext(x *uint64) uint64 {
	*x ^= *x << 13
	*x ^= *x >> 7
	*x ^= *x << 17
	return *x
}

func coirMix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// coirRand is the generator of the program: rand(), map order, and so on are the same in each run of a schedule.
func coirRand() (x uint64, ok bool) {
	gp := getg()
	if gp.m.curg != gp || !(coir.On && gp.bubble != nil || gp.goid == 1) {
		return 0, false
	}
	return coirNext(coirSched.stateOf(gp)) * 0x9E3779B97F4A7C15, true
}

// coirTimerRand orders the timers of one instant. It is not a draw of the program: a timer that was stopped may leave
// the heap sooner or later, and draws again only if it has left.
func coirTimerRand() uint32 {
	if !coir.On {
		return cheaprand()
	}
	s := &coirSched
	if s.timerStep != s.steps {
		s.timerStep, s.ordered = s.steps, 0
	}
	s.ordered++
	return uint32(coirMix(s.seed ^ s.steps<<16 ^ s.ordered))
}

//go:linkname sysrand_coirRead crypto/internal/sysrand.coirRead
func sysrand_coirRead(b []byte) bool {
	gp := getg()
	if !coirIn(gp) {
		return false
	}
	x := coirSched.stateOf(gp)
	for i := range b {
		b[i] = byte(coirNext(x) >> 24)
	}
	return true
}
