package runtime

import (
	"internal/coir"
	"internal/search"
	_ "unsafe" // for go:linkname
)

// coirTime moves the clock of the bubble, and finds out when only timers make progress.
//
//   - The clock never moves back, and each move depends only on the decisions, the seed and the steps.
//   - idle, charged and moved are steps that have been made: none is larger than steps.
type coirTime struct {
	racing  uint64 // see coir.Config
	ticks   uint64
	span    int64
	exact   int    // bubbles of the test's own that it is in: the clock moves as in testing/synctest
	idle    uint64 // the step at which all waited last
	charged uint64 // the step up to which the clock has been charged for steps
	parks   uint64 // how often a goroutine has begun to wait since idle
	ended   int    // ticks of the clock since the test has ended

	progress  uint64 // counts steps of the test's own goroutine unless it polls, and goroutines that begin or end
	ticked    uint64 // moves of the clock since progress changed
	last      uint64 // progress, when the clock moved last
	lastTime  int64  // when that changed
	sleeps    bool   // since then, the test's own goroutine has begun to wait
	lastStep  uint64 // the step at the first move of the clock after that
	hashThen  uint64 // the hash at that step
	moved     uint64 // the last step of a goroutine that does not run the function of a timer
	stepsThen uint64 // moved, when the clock moved last
	until     int64  // the last moment for which a timer was set when only timers seemed to make progress
}

// coirBaseTime is when a schedule begins, which the command decides. Only the time since then is in the hash: a token
// is valid whenever it is replayed.
var coirBaseTime int64

//go:linkname coirSetBaseTime testing.coirSetBaseTime
func coirSetBaseTime(t int64) { coirBaseTime = t }

// coirMono returns the monotonic reading of a time: the schedule begins a second after the process. In a bubble that
// the test made itself times have none.
func coirMono(bubble *synctestBubble) int64 {
	if !coir.On || coirSched.exact > 0 {
		return 0
	}
	return runtimeInitTime + 1e9 + bubble.now - coirBaseTime
}

// A step takes a nanosecond, so that a short timer can fire while goroutines run; in return each timer fires up to
// coirLate late, so that timers started a few steps apart still fire in any order. Both times are shorter than in
// reality: what needs more is not tried.
//
// In a program that polls, or spins until a time has come, there is no moment at which all goroutines wait. So a step
// takes a microsecond after the first coirFreeSteps of them, and ten times as much after each million. But goroutines
// that wait for each other work, and a timer may be there to say that they take too long. So a step takes no more than
// the microsecond if there is a wait in a thousand steps; and no goroutine that can run waits for more than
// coirFreeSteps of such steps: outside, none would for so long.
const (
	coirLate      = 1000
	coirFreeSteps = 20000
)

// coirCharge moves the clock for the steps made since it was charged last.
func coirCharge(gp *g) {
	s := &coirSched
	if s.steps-s.idle > coirFreeSteps {
		if s.steps-max(s.charged, s.idle) < 64 {
			return
		}
		n := int64(s.steps-max(s.charged, s.idle)) * 1000
		s.charged = s.steps
		if busy := s.steps - s.idle; s.parks <= busy/1000 {
			for ; busy >= 1000000; busy -= 1000000 {
				n *= 10
			}
		}
		coirMoveClock(gp, n)
		return
	}
	if s.exact > 0 {
		return
	}
	gp.bubble.now++
	if next := coirWakeTime(gp.bubble); next != 0 {
		s.out.UsesTime = true
		if next <= gp.bubble.now {
			coirMoveClock(gp, 0)
		}
	}
}

// coirMoveClock moves the clock of the bubble by d; or, if d is 0, to the next time that a goroutine waits for, as its
// root does when all wait.
func coirMoveClock(gp *g, d int64) {
	bubble := gp.bubble
	lock(&bubble.mu)
	next := coirWakeTime(bubble)
	now := bubble.now + d
	if d == 0 {
		now = max(now, next)
	}
	bubble.now = now
	unlock(&bubble.mu)
	if next == 0 || next > now {
		return
	}
	systemstack(func() {
		curg := gp.m.curg
		gp.m.curg = nil
		bubble.timers.check(bubble.now, bubble)
		gp.m.curg = curg
	})
}

// coirExactly runs the function of a bubble that the test made. There time stands still while goroutines run.
func coirExactly(f func()) {
	coirSched.exact++
	defer func() { coirSched.exact-- }()
	f()
}

// coirExact stops the clock between two of its moves, as in a test that calls synctest.Test.
//
//go:linkname coirExact testing.coirExact
func coirExact() { coirSched.exact = 1 }

// coirYear is a time in which a test would have made progress.
const coirYear = 365 * 24 * 3600e9

// coirForever is a time after which a timer is to never fire. gRPC sets timers to the longest time that there is.
const coirForever = 100 * coirYear

// coirWakeTime returns when the next timer of a bubble fires, or 0 if none does.
func coirWakeTime(bubble *synctestBubble) int64 {
	next := bubble.timers.wakeTime()
	if coir.On && next-bubble.now > coirForever {
		return 0
	}
	return next
}

// coirLoop is how often a test may sleep in a loop, in its own goroutine.
const coirLoop = 1_000_000

// coirTick is called when the root moves the clock: all wait. It reports whether only timers make progress, and always
// would: for many moves of the clock, and beyond each moment for which a timer was set when the moves had been enough.
// A move after which only functions of timers have run counts ten times. A twentieth of the moves is enough if the
// clock has moved by a year. A test that sleeps for seconds beside others that sleep for milliseconds makes many moves,
// and goes on.
func coirTick(bubble *synctestBubble) bool {
	s := &coirSched
	if s.givenUp {
		return true
	}
	s.idle, s.parks = s.steps, 0
	s.happens(coirEvent{t: coirTransition{clock: true}, actor: search.Clock, fork: -1, wake: -1})
	if s.last != s.progress {
		s.last, s.ticked, s.until, s.hashThen, s.lastTime = s.progress, 0, 0, s.hash, bubble.now
		s.lastStep, s.sleeps = s.steps, false
	}
	if s.ticked++; s.moved == s.stepsThen && !s.sleeps {
		s.ticked += 9
	}
	s.stepsThen = s.moved
	enough := s.ticks
	switch {
	case s.sleeps && s.span > 0: // else it is known that there will be none
		enough = max(enough, coirLoop)
	case bubble.now-s.lastTime > coirYear:
		enough /= 20
	}
	if s.ticks == 0 || s.ticked < enough || bubble.now-s.lastTime < s.span && s.ticked < 10*enough {
		return false
	}
	if s.until == 0 { // all wait, and nothing changes the heap
		s.until = bubble.now
		for _, t := range bubble.timers.heap {
			if t.timer.state&timerZombie == 0 && t.when-bubble.now < coirForever {
				s.until = max(s.until, t.when)
			}
		}
	}
	if bubble.now <= s.until && s.ticked < 100*enough {
		return false
	}
	s.out.OnlyTimers = true
	s.steps, s.hash = s.moved, s.hashThen // what led here; how long it lasted does not matter
	if gp := coirActors[coirTestG].g.ptr(); gp != nil && gp.coir.polls {
		s.steps = s.lastStep
	}
	return true
}

// coirTimeStops reports whether the clock stops: the test has ended, and what it left behind had a hundred ticks to end
// as well.
func coirTimeStops() bool {
	coirSched.ended++
	return !coir.On || coirSched.ended > 100
}
