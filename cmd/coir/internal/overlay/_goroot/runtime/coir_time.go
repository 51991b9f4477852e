package runtime

import (
	"internal/coir"
	"internal/search"
	_ "unsafe" // for go:linkname
)

// coirTime moves the clock of the bubble, and detects that only timers make progress.
//
//   - The clock never moves back, and each move depends only on the decisions, the seed and the steps.
//   - idle, charged and moved are numbers of steps that have been made, so none is larger than steps.
type coirTime struct {
	racing  uint64 // see coir.Config
	ticks   uint64
	span    int64
	exact   int    // if not 0, the clock moves as in testing/synctest: the depth of bubbles that the test made
	idle    uint64 // the step at which all goroutines last waited
	charged uint64 // the step up to which the clock has been charged for steps
	parks   uint64 // how often goroutines have begun to wait since step idle
	early   int64  // how far the clock has moved since step idle by coirMovesEarly
	ended   int    // ticks of the clock since the test ended

	progress  uint64 // counts steps of the test's main goroutine unless it polls, and starts and ends of goroutines
	ticked    uint64 // moves of the clock since progress last changed
	last      uint64 // the value of progress when the clock last moved
	lastTime  int64  // the time when coirTick last saw progress change
	sleeps    bool   // the test's main goroutine has begun to wait since lastTime
	lastStep  uint64 // the step at lastTime
	hashThen  uint64 // the hash at lastTime
	moved     uint64 // the last step of a goroutine that does not run the function of a timer
	stepsThen uint64 // the value of moved when the clock last moved
	until     int64  // when only timers seemed to make progress: the latest time for which a timer was set
}

// coirBaseTime is the time at which each schedule begins. The command sets it. Only the time since then is part of the
// hash, so a token stays valid.
var coirBaseTime int64

//go:linkname coirSetBaseTime testing.coirSetBaseTime
func coirSetBaseTime(t int64) { coirBaseTime = t }

// coirMono returns the monotonic clock reading for the present time. A schedule begins one second after the process on
// the monotonic clock. In a bubble that the test made itself, as in go test, times have no monotonic reading.
func coirMono(bubble *synctestBubble) int64 {
	if !coir.On || coirSched.exact > 0 {
		return 0
	}
	return runtimeInitTime + 1e9 + bubble.now - coirBaseTime
}

// A step takes a nanosecond, so that a short timer can fire while goroutines run. Each timer fires up to coirLate
// nanoseconds late, so that timers started a few steps apart can still fire in any order. Both times are shorter than
// in reality, so behaviour that needs longer delays is not explored.
//
// In a program that polls, or spins until a certain time, there is no moment at which all goroutines wait. So after
// coirFreeSteps steps without such a moment a step takes a microsecond, and ten times as long after each million steps.
// But goroutines that wait for each other do useful work, and a timer may limit the time of that work. So a step takes
// no more than a microsecond if goroutines wait at least once in a thousand steps. While steps take a microsecond or
// more, no goroutine that can run waits for the turn for more than coirFreeSteps steps, because in reality none would
// wait for so long.
const (
	coirLate      = 1000
	coirFreeSteps = 20000
)

// coirCharge moves the clock forward by the time of the steps made since the last charge.
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

// coirMoveClock moves the clock of the bubble forward by d. If d is 0 it moves the clock to the next timer, as the root
// does when all goroutines wait.
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

// coirMovesEarly reports whether the clock moves to the next timer now, although goroutines can run. That depends only
// on the seed, the step and the timer, and not on the strategy, because a replay repeats the decisions with another
// strategy.
func coirMovesEarly(bubble *synctestBubble) bool {
	s := &coirSched
	if coirMix(s.seed^s.steps<<32)>>11%100 >= s.racing&^coir.RacingBounded {
		return false
	}
	next := coirWakeTime(bubble)
	if next == 0 {
		return true
	}
	early := s.early + max(next-bubble.now, 0)
	if s.racing&coir.RacingBounded != 0 && early > coir.MostSlow {
		return false
	}
	s.early = early
	s.out.Early = max(s.out.Early, early)
	return true
}

// coirExactly runs the function of a bubble that the test made. In such a bubble the clock stands still while
// goroutines run.
func coirExactly(f func()) {
	coirSched.exact++
	defer func() { coirSched.exact-- }()
	f()
}

// coirExact makes the clock stand still while goroutines run, as in a test that calls synctest.Test.
//
//go:linkname coirExact testing.coirExact
func coirExact() { coirSched.exact = 1 }

// coirYear is so long that a test which makes progress at all has made some by then.
const coirYear = 365 * 24 * 3600e9

// coirForever is the duration from which a timer counts as one that never fires. gRPC sets timers to the longest
// duration possible.
const coirForever = 100 * coirYear

// coirWakeTime returns when the next timer of a bubble fires, or 0 if none does.
func coirWakeTime(bubble *synctestBubble) int64 {
	next := bubble.timers.wakeTime()
	if coir.On && next-bubble.now > coirForever {
		return 0
	}
	return next
}

// coirLoop is the number of times that the test's main goroutine may sleep in a loop.
const coirLoop = 1_000_000

// The root calls coirTick before it moves the clock, when all goroutines wait. It reports whether only timers make
// progress, and always would. It reports that if there was no progress during many moves of the clock, and then none
// until all timers that were set had fired. A move after which only functions of timers ran counts ten times. If the
// clock has moved by a year, a twentieth of the moves is enough. Fewer moves would not be enough for a test that sleeps
// for seconds while other goroutines sleep for milliseconds: it makes progress only after many moves.
func coirTick(bubble *synctestBubble) bool {
	s := &coirSched
	if s.givenUp {
		return true
	}
	s.idle, s.parks, s.early = s.steps, 0, 0
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
	case s.sleeps && s.span > 0: // with a span of 0 the test is known to make no progress
		enough = max(enough, coirLoop)
	case bubble.now-s.lastTime > coirYear:
		enough /= 20
	}
	if s.ticks == 0 || s.ticked < enough || bubble.now-s.lastTime < s.span && s.ticked < 10*enough {
		return false
	}
	if s.until == 0 { // all goroutines wait, so nothing changes the heap of timers meanwhile
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
	s.steps, s.hash = s.moved, s.hashThen // the steps before only timers ran; how long they ran does not matter
	if gp := coirActors[coirTestG].g.ptr(); gp != nil && gp.coir.polls {
		s.steps = s.lastStep
	}
	return true
}

// coirTimeStops reports whether the clock of a test that has ended stops. The goroutines that the test left behind have
// a hundred ticks of the clock to end.
func coirTimeStops() bool {
	coirSched.ended++
	return !coir.On || coirSched.ended > 100
}
