package testing

import (
	"bytes"
	"context"
	"fmt"
	"internal/coir"
	"internal/race"
	"internal/replay"
	"internal/search"
	"internal/synctest"
	"os"
	"runtime"
	"strings"
	"time"
	"unsafe"
)

// coirConfig says how to run a schedule: the strategy, and the configuration for package runtime.
type coirConfig struct {
	strategy search.Strategy
	coir.Config
	saved bool // it is the schedule of a saved failure, which has been shrunk before
	kept  bool // it is another schedule that was kept, as it is
}

// by returns a copy of the configuration that makes the given decisions.
func (c *coirConfig) by(script []int) coirConfig {
	return coirScripted(&search.Script{Ways: script}, c)
}

// again returns a copy of the configuration, whose strategy must be a script, for one more run.
func (c *coirConfig) again() coirConfig {
	d := *c
	s := *c.strategy.(*search.Script)
	s.Begin(0)
	d.strategy = &s
	return d
}

// coirScripted returns a configuration that runs script with the seed, the racing clock and the faults of another
// configuration.
func coirScripted(script *search.Script, of *coirConfig) coirConfig {
	return coirConfig{
		strategy: script, Config: coir.Config{Seed: of.Seed, Racing: of.Racing, Faults: of.Faults}, saved: of.saved,
	}
}

// coirRun is the result of running a schedule.
type coirRun struct {
	coir.Outcome
	config     coirConfig
	kind       coir.Kind
	text       string // of a panic, or a remark on a deadlock
	leftBehind bool   // the test passed or failed, and left goroutines behind
	inKernel   bool   // a goroutine waits in the kernel at the end
	skipped    bool
	output     string
}

// The explorer gives a schedule up after coirMostSteps steps; after coirMostBusy steps without a moment at which all
// goroutines wait; and after coirMostTicks moves of the clock, by at least coirSpan in all, in which the test's main
// goroutine made no step and no goroutine began or ended. The limits do not depend on real time, so that a result does
// not depend on the load of the machine.
const coirMostSteps, coirMostBusy, coirMostTicks = 30_000_000, 5_000_000, 200_000

// coirSpan is the default of -timeout: the time for which go test waits for a test.
const coirSpan = 10 * time.Minute

// coirBriefTicks replaces coirMostTicks in the search for a twin, which is useful only if it passes soon.
const coirBriefTicks = 500

// coirTry is the data that run and the bubble share while a schedule runs.
type coirTry struct {
	root   *T // the parent of the test; nil before the bubble begins
	output bytes.Buffer
	ended  bool // the test and root have ended
	races  int  // the number of data races reported before the schedule
}

// run runs one schedule: it sets the limits, runs the test in a bubble, and finds out how the schedule ended.
func (x *coirExplorer) run(c coirConfig) (r coirRun) {
	if coirHeapLive() > 64<<20 {
		runtime.GC()
	}
	x.setLimits(&c)
	try := coirTry{races: race.Errors()}
	coirTest, coirFailed = nil, false
	x.count++
	switch {
	case x.purpose == coirShrinks:
		x.shrinks++
		x.repeated++
	case x.purpose != coirSearches:
		x.repeated++
	case c.Racing > 0:
		x.racing++
	}
	x.ended.Store(false)
	x.gaveUp.Store(0)
	x.begun.Add(1)
	coirBegin(c.strategy, &c.Config)
	defer func() { // synctest.Run panics if goroutines remain and none can run
		p := recover()
		r.config = c
		x.finish(&r, &try, p)
	}()
	synctest.Run(x.inBubble(&try))
	return r
}

// setLimits sets the parts of the configuration that do not depend on the schedule: the limits and the command's
// settings.
func (x *coirExplorer) setLimits(c *coirConfig) {
	c.MostBusy, c.MostSteps = coirMostBusy, coirMostSteps
	c.MostTicks, c.TickSpan = coirMostTicks, int64(coirSpan)
	c.Atomics, c.Collect, c.Sweeps = coirSet.atomics, coirSet.leaks, x.purpose.sweeps()
	c.CountNews, c.InMemory = coirSet.kept != "", !coirSet.kernel
	if x.onlyTimers {
		c.MostTicks, c.TickSpan = c.MostTicks/20, 0 // fewer, so that all steps of the deadlock are recorded
	}
	if x.purpose == coirSeeksTwin {
		c.MostTicks, c.TickSpan = coirBriefTicks, 0
	}
}

// inBubble returns the main function of the bubble. It runs the test as a subtest of a new root.
func (x *coirExplorer) inBubble(try *coirTry) func() {
	return func() {
		coirQuiet(coir.QuietLast)
		ctx, cancel := context.WithCancel(context.Background())
		match := x.t.tstate.match
		state := newTestState(1<<20, &matcher{
			filter: match.filter, skip: match.skip, matchFunc: match.matchFunc, subNames: map[string]int32{},
		})
		if *timeout > 0 { // on the virtual clock
			state.deadline = time.Now().Add(*timeout)
		}
		try.root = &T{
			common: common{
				signal: make(chan bool, 1), barrier: make(chan bool), w: &try.output, ctx: ctx, cancelCtx: cancel,
				modulePath: x.t.modulePath, importPath: x.t.importPath,
			},
			tstate: state,
		}
		tRunner(try.root, func(r *T) { r.Run(x.t.name, x.fn) })
		try.ended = true
		x.ended.Store(true)
	}
}

// finish ends the schedule in package runtime, and fills in r. p is the value with which synctest.Run panicked, or nil.
func (x *coirExplorer) finish(r *coirRun, try *coirTry, p any) {
	if p != nil && !try.ended && x.awaitsOutside() {
		// A goroutine outside of the bubble may still wake a waiting one.
		time.Sleep(20 * time.Millisecond)
	}
	coirFinish(&r.Outcome)
	x.trace = (x.trace ^ r.Hash) * 1099511628211
	x.decided = x.decided || r.Decisions > 0
	r.Panic, r.Request = strings.Clone(r.Panic), strings.Clone(r.Request)
	r.RecoveredText = strings.Clone(r.RecoveredText)
	race.Acquire(unsafe.Pointer(&coirTest))
	r.skipped = coirTest != nil && coirTest.Skipped()
	x.judge(r, try, p)
	if r.leftBehind {
		x.noteLeft(r)
	}
	ordinary := r.config.Racing == 0 && x.purpose == coirSearches
	if r.skipped && r.kind == coir.KindPass && ordinary {
		x.skips++
	}
	if r.inKernel = p != nil && coirInKernel(r); r.touched() && ordinary {
		x.touched++
	}
	if r.Recovered > 0 && x.purpose == coirSearches {
		x.noteRecovered(r)
	}
	r.output = try.output.String()
}

// noteLeft counts a schedule of the search that left goroutines behind, and keeps the first. A timer that fires early
// may be why goroutines are left behind, so without -racing a schedule with a racing clock does not count.
func (x *coirExplorer) noteLeft(r *coirRun) {
	racing := r.config.Racing > 0 && (!coirSet.racing || r.Early > coir.MostSlow)
	if x.purpose != coirSearches || racing {
		return
	}
	if x.leftBehind++; x.leftBehind == 1 {
		x.left = r.config.by(replay.Script(r.allDecisions()))
	}
}

// judge sets r.kind. If several cases apply, the first one below counts.
func (x *coirExplorer) judge(r *coirRun, try *coirTry, p any) {
	failed := try.root != nil && try.root.Failed()
	switch {
	case r.Simulates:
		r.kind = coir.KindSimulates
	case r.NeedsKernel != "":
		r.kind = coir.KindKernel
	case r.PanicG != 0:
		r.kind, r.text = coir.KindPanic, strings.TrimSpace(r.Panic)
	case (r.TooBusy || r.TooLong) && try.ended && !failed: // a goroutine that was left behind spins
		r.leftBehind = true
	case r.TooBusy && x.plainSteps > 0 && x.plainSteps < coirMostBusy/20:
		r.kind = coir.KindLivelock
	case r.TooBusy || r.TooLong:
		r.kind = coir.KindLong
	case race.Errors() != try.races:
		r.kind = coir.KindRace
	case p != nil && !strings.HasPrefix(fmt.Sprint(p), "deadlock"):
		panic(p)
	case p != nil && !try.ended && x.waitsForOutside(r):
		r.kind = coir.KindUncontrolled
	case failed:
		r.kind = coir.KindFail
		r.leftBehind = p != nil
	case p != nil && try.ended:
		r.leftBehind = true
	case p != nil:
		r.kind = coir.KindDeadlock
		if r.OnlyTimers {
			r.text = "only timers still run"
		}
	}
}

// waitsForOutside reports whether something outside may end the waits of a schedule in which no goroutine can run, so
// that it is not a deadlock.
func (x *coirExplorer) waitsForOutside(r *coirRun) bool {
	switch x.gaveUp.Load() {
	case coirCycle:
		return false
	case coirWaits:
		return true
	}
	return (r.Foreign != 0 || r.Signals) && !x.inCycle()
}

// runPlain runs the plain schedule, in which the turn passes only when it must.
func (x *coirExplorer) runPlain() coirRun {
	return x.run(coirConfig{
		strategy: search.Plain(), Config: coir.Config{Seed: coirSet.seed, Faults: coirSet.faults, Trace: true},
	})
}

// runShown runs a schedule whose output the command shows.
func (x *coirExplorer) runShown(c coirConfig) coirRun {
	os.Stdout.WriteString("\x16coir begin\n")
	coirShown = true
	r := x.run(c)
	coirShown = false
	os.Stdout.WriteString("\x16coir end\n")
	return r
}

// coirShown is set while the schedule that the command shows is run. A debugger reads it; see `coir debug`.
var coirShown bool

// leaks makes a schedule fail if it has left goroutines behind, unless the command disables that. If x.recovers is set,
// it also makes a schedule fail in which a handler panicked.
func (x *coirExplorer) leaks(r *coirRun) {
	switch {
	case r.kind != coir.KindPass:
	case r.leaves() && coirSet.leaks:
		r.kind = coir.KindLeak
	case x.recovers && r.Recovered > 0:
		r.kind = coir.KindRecovered
	}
}

// leaves reports whether a schedule has left goroutines behind. A sleeping goroutine does not count, because it will
// continue. If the program waits for signals or in the kernel, no goroutine counts.
func (r *coirRun) leaves() bool {
	if !r.leftBehind || r.Signals || r.inKernel || r.skipped {
		return false
	}
	for i := 1; i <= r.Actors && i < coir.KeptActors; i++ {
		if a := coirActorAt(i); a.State == coir.Waiting && a.Wait != coir.WaitSleep {
			return true
		}
	}
	return false
}

// allDecisions returns the decisions of r, which must be the last schedule.
func (r *coirRun) allDecisions() []replay.Decision {
	d := make([]replay.Decision, r.Decisions)
	for i := range d {
		made := coirDecisionAt(i)
		d[i] = replay.Decision{Way: int(made.Way), Ways: int(made.Ways)}
	}
	return d
}
