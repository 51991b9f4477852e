package runtime

import (
	"internal/coir"
	_ "unsafe" // for go:linkname
)

// coirDraws has what the program draws at random, which is the same in each run of a schedule: it depends only on the
// seed, and on how often the program has drawn.
type coirDraws struct {
	seed uint64
	rand uint64 // the state of the generator, never 0
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
	coirSched.rand |= 1
	return coirNext(&coirSched.rand) * 0x9E3779B97F4A7C15, true
}

// coirTimerRand orders the timers of one instant.
func coirTimerRand() uint32 {
	if coir.On {
		return uint32(coirNext(&coirSched.rand) >> 16)
	}
	return cheaprand()
}

//go:linkname sysrand_coirRead crypto/internal/sysrand.coirRead
func sysrand_coirRead(b []byte) bool {
	if !coirIn(getg()) {
		return false
	}
	for i := range b {
		b[i] = byte(coirNext(&coirSched.rand) >> 24)
	}
	return true
}
