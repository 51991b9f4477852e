package runtime

import (
	"internal/coir"
	_ "unsafe" // for go:linkname
)

// coirDraws generates the program's random numbers. They are the same in each run of a schedule, because they depend
// only on the seed and on how many numbers the program has drawn.
//
// Goroutines without points have a separate generator. Such a goroutine may refill a cache that the garbage collector
// has emptied, such as that of crypto/tls. The numbers of other goroutines must not depend on that.
type coirDraws struct {
	seed  uint64
	rand  uint64 // the state of the generator; never 0
	quiet uint64 // the state of the generator of goroutines without points

	timerStep uint64 // the step in which a timer was last ordered
	ordered   uint64 // how many timers were ordered in that step
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

// coirRand returns the next random number of the program, for rand(), the order of maps, and so on. It returns false if
// the runtime must draw the number.
func coirRand() (x uint64, ok bool) {
	gp := getg()
	if gp.m.curg != gp || !(coir.On && gp.bubble != nil || gp.goid == 1) {
		return 0, false
	}
	return coirNext(coirSched.stateOf(gp)) * 0x9E3779B97F4A7C15, true
}

// coirTimerRand returns a random number that orders the timers of one instant. It does not use the program's generator,
// because the number of calls varies: a stopped timer leaves the heap at some later time, and calls coirTimerRand again
// only if it has left.
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
