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
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// This file explores the schedules of a test for `coir test`. If the process must explore, tRunner calls coirExplore
// instead of the test's function. coirExplore runs the function many times, each time in a bubble of its own, by a
// strategy of package search. It records what it finds (coir_record.go) for the command, which has started the process
// and informs the user.

// Functions of package runtime; see coir.go there.

//go:linkname coirBegin
func coirBegin(c *coirConfig)

//go:linkname coirFinish
func coirFinish(out *coirOutcome)

//go:linkname coirPoint
//go:noescape
func coirPoint(op uint8, p unsafe.Pointer)

//go:linkname coirQuiet
func coirQuiet(q uint32) uint32

//go:linkname coirDecisionAt
func coirDecisionAt(i int) (ways, way uint16, kind uint8, step uint32)

//go:linkname coirStepAt
func coirStepAt(i int, pcs []uintptr) (g, obj uint32, op uint8, at int64, done uint32, chose int16, npc int)

//go:linkname coirCaseAt
func coirCaseAt(i int) (step, obj uint32, k uint16, send bool)

//go:linkname coirChannelAt
func coirChannelAt(i int, pcs []uintptr) (obj uint32, timer bool, room uint, npc int)

//go:linkname coirActorAt
func coirActorAt(i int) (parent uint32, gopc uintptr, op, state uint8, reason string, obj, step uint32, since int64)

//go:linkname coirActorPCs
func coirActorPCs(i int, pcs []uintptr) int

//go:linkname coirActorName
func coirActorName(i int) string

//go:linkname coirExact
func coirExact()

//go:linkname coirHeapLive
func coirHeapLive() uint64

//go:linkname coirSetProcs
func coirSetProcs(n int)

//go:linkname coirSetBaseTime
func coirSetBaseTime(t int64)

//go:linkname coirBirth
func coirBirth(i int, pcs []uintptr) int

//go:linkname coirTakeTurn
func coirTakeTurn() (what int)

//go:linkname coirStepsNow
func coirStepsNow() uint64

//go:linkname coirDPOR
func coirDPOR() search.Strategy

type coirConfig struct {
	strategy search.Strategy
	seed     uint64
	racing   uint64
	limit    uint64
	most     uint64
	ticks    uint64
	span     int64
	trace    bool
	atomics  bool
	collect  bool
	keep     bool
	memory   bool
	faults   uint32
}

// by returns the configuration with the given decisions.
func (c *coirConfig) by(script []int) coirConfig {
	return coirConfig{strategy: &search.Script{Ways: script}, seed: c.seed, racing: c.racing}
}

// again returns the configuration, whose strategy is a script, for one more run.
func (c *coirConfig) again() coirConfig {
	d := *c
	s := *c.strategy.(*search.Script)
	s.Begin(0)
	d.strategy = &s
	return d
}

type coirOutcome struct {
	steps, hash uint64
	decisions   int
	actors      int
	endless     bool
	long        bool
	simulates   bool
	ticking     bool
	timed       bool
	misfit      bool
	overflow    bool
	lost        bool
	cases       int
	channels    int
	news        uint32
	now         int64
	outside     uint32
	foreign     uint32
	signals     bool
	kernel      bool
	kernelNet   string
	panicG      uint32
	panic       string
}

// coirSettings are the command's settings, from the environment: COIR_TEST=name=value,name=value.
type coirSettings struct {
	on        bool
	strategy  string
	seed      uint64
	schedules int
	budget    time.Duration
	bound     int
	racing    bool
	replay    string
	record    string   // the file to write to
	kept      string   // the file with kept schedules; empty: none are kept
	failed    []string // the tokens of earlier failures
	all       *search.All
	kernel    bool // sockets are the kernel's
	leaks     bool
	faults    uint32 // see package runtime
	atomics   bool
	fresh     int   // run only the schedule with this number, in a process that has run no other; -1: explore
	from      int   // leave out the schedules before this one, which other processes have run
	base      int64 // when a schedule begins, in seconds since 1970
	debug     bool  // a debugger may stop the process, so that a step may take long
	patience  int   // how often watch sees a schedule that waits for something outside before it is given up
}

var coirSet = coirParse(os.Getenv("COIR_TEST"))

func coirParse(env string) coirSettings {
	s := coirSettings{
		on: env != "", strategy: "default", seed: 1, schedules: 10000, budget: time.Second, bound: 2, leaks: true, fresh: -1,
		patience: 100,
	}
	for _, f := range strings.Split(env, ",") {
		name, value, _ := strings.Cut(f, "=")
		n, _ := strconv.Atoi(value)
		switch name {
		case "strategy":
			s.strategy = value
		case "seed":
			s.seed, _ = strconv.ParseUint(value, 10, 64)
		case "schedules":
			s.schedules = n
		case "budget":
			s.budget, _ = time.ParseDuration(value)
		case "bound":
			s.bound = n
		case "racing":
			s.racing = value == "true"
		case "replay":
			s.replay = value
		case "network":
			s.kernel = value == "kernel"
		case "leaks":
			s.leaks = value == "true"
		case "atomics":
			s.atomics = value == "true"
		case "fresh":
			s.fresh = n
		case "from":
			s.from = n
		case "base":
			s.base, _ = strconv.ParseInt(value, 10, 64)
		case "debug":
			s.debug = value == "true"
		case "patience":
			s.patience = n
		case "faults":
			s.faults = uint32(n)
		}
	}
	s.record, s.kept = os.Getenv("COIR_RECORD"), os.Getenv("COIR_KEPT")
	s.failed = strings.Fields(os.Getenv("COIR_FAILED"))
	for _, name := range []string{"COIR_TEST", "COIR_RECORD", "COIR_KEPT", "COIR_FAILED"} {
		os.Unsetenv(name) // a test may run itself again, in a process that must not explore
	}
	return s
}

// coirExplores reports whether to explore the schedules of t. If it reports false, tRunner runs t: t is a part of the
// running schedule, or the process does not explore.
func coirExplores(t *T) bool {
	if !coirSet.on || t.parent == nil || t.level != 1 {
		return false
	}
	if coir.On && synctest.IsInBubble() {
		coirTest = t
		race.ReleaseMerge(unsafe.Pointer(&coirTest)) // the schedule may end while this goroutine is in the kernel
		return false
	}
	return true
}

// coirReturned is called when the function of a test has returned. After that the harness uses the goroutine, and its
// operations have no points.
func coirReturned(t *T, was uint32) {
	if !coir.On || !synctest.IsInBubble() {
		coirQuiet(was)
		return
	}
	coirQuiet(coirNoPoints)
	if t.level == 0 { // the root has failed if the test has
		return
	}
	t.mu.RLock()
	coirFailed = t.failed
	race.ReleaseMerge(unsafe.Pointer(&coirTest))
	t.mu.RUnlock()
}

// coirExplore explores the schedules of a test.
func coirExplore(t *T, fn func(*T)) {
	x := &coirExplorer{t: t, fn: fn}
	if x.start(); coirPart.asked {
		coirRunParts(t, fn)
	}
}

// start explores with the runtime settings that a schedule needs.
func (x *coirExplorer) start() {
	// A garbage collection takes no turn, but a schedule should not be slowed down by the garbage of earlier ones.
	if os.Getenv("GOGC") == "" {
		defer debug.SetGCPercent(debug.SetGCPercent(-1))
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(2 << 30))
	procs := runtime.GOMAXPROCS(1) // one goroutine runs at a time: other processors would only look for work
	defer runtime.GOMAXPROCS(procs)
	coirSetBaseTime(coirSet.base * 1e9)
	coirSetProcs(2) // what the test sees, on every machine, so that a token is valid on all of them
	x.began = time.Now()
	stop := make(chan bool)
	// The ticker is not made in watch, so that the process makes its first timer at the same point in each run.
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	hidden := make(chan bool)
	go x.watch(tick, hidden, stop)
	<-hidden
	defer close(stop)
	x.explore()
}

// Ways to be quiet; see package runtime.
const coirLast, coirNoPoints = 1, 2

// coirFail is the point before a test fails. Fail calls itself for each parent, and only the last call makes the point.
func coirFail(c *common) {
	if coir.On && c.parent == nil {
		coirPoint(coir.OpFail, nil)
	}
}

// coirHush makes a goroutine that calls a method of T quiet. It returns the old state.
func coirHush() uint32 {
	was := coirQuiet(coirNoPoints)
	if was == coirLast {
		coirQuiet(was)
	}
	return was
}

// coirCleanup runs a function that the test has passed to Cleanup.
func coirCleanup(f func()) {
	defer coirQuiet(coirQuiet(0))
	f()
}

// coirEnded reports whether c is the root of a schedule, which would get what a test logs after its end.
func coirEnded(c *common) bool { return coir.On && c.parent == nil && synctest.IsInBubble() }

// coirTest is the test of the running schedule, and coirFailed whether it had failed when its function returned, before
// the harness fails it for a data race.
var (
	coirTest   *T
	coirFailed bool
)

// coirRun is the result of running a schedule.
type coirRun struct {
	coirOutcome
	config  coirConfig
	kind    string // of failure; "" if it passed
	text    string
	left    bool // it passed, and left goroutines behind
	within  bool // a goroutine waits in the kernel at its end
	skipped bool
	output  string
}

type coirExplorer struct {
	t        *T
	fn       func(*T)
	began    time.Time
	count    int
	complete bool         // the strategy has run all its schedules
	plain    uint64       // steps of the plain schedule
	same     uint64       // its hash
	known    bool         // the explorer shrinks a deadlock in which only timers go on
	brief    bool         // it searches for the twin of a failure
	begun    atomic.Int64 // all schedules, for watch
	left     int          // schedules that left goroutines behind
	trace    uint64       // a hash of the hashes of all schedules
	all      int          // the schedules within the bound, if there are no others
	skips    int          // schedules in which the test skips the rest
	only     string       // a token: run its schedule, and some that are near it
	slow     bool         // a failure was found by slowly

	coirKernel
}

// The explorer gives a schedule up after coirMostSteps steps; after coirMostBusy steps without a moment at which all
// goroutines wait; and after coirMostTicks moves of the clock, by at least coirSpan in all, in which the test's own
// goroutine made no step and no goroutine began or ended. The limits count what the schedule does, and not real time,
// so that a result does not depend on the load of the machine.
const coirMostSteps, coirMostBusy, coirMostTicks = 30_000_000, 5_000_000, 200_000

// coirSpan is how long go test waits for a test, unless -timeout says otherwise.
const coirSpan = 10 * time.Minute

// coirBriefTicks is the limit in place of coirMostTicks in the search for a twin, which is of use only if it passes
// soon.
const coirBriefTicks = 500

// run runs one schedule.
func (x *coirExplorer) run(c coirConfig) (r coirRun) {
	if coirHeapLive() > 64<<20 {
		runtime.GC()
	}
	c.limit, c.most, c.ticks, c.span = coirMostBusy, coirMostSteps, coirMostTicks, int64(coirSpan)
	c.atomics, c.collect = coirSet.atomics, coirSet.leaks
	c.keep, c.memory, c.faults = coirSet.kept != "", !coirSet.kernel, coirSet.faults
	if x.known {
		c.ticks, c.span = c.ticks/20, 0 // so that all steps of the deadlock are recorded
	}
	if x.brief {
		c.ticks, c.span = coirBriefTicks, 0
	}
	var root *T
	var output bytes.Buffer
	done := false
	races := race.Errors()
	coirTest, coirFailed = nil, false
	x.count++
	x.ended.Store(false)
	x.gaveUp.Store(0)
	x.begun.Add(1)
	coirBegin(&c)
	defer func() {
		p := recover()
		if p != nil && !done && !x.brief { // a goroutine outside of the bubble may still wake one that waits
			time.Sleep(20 * time.Millisecond)
		}
		r.config = c
		coirFinish(&r.coirOutcome)
		x.trace = (x.trace ^ r.hash) * 1099511628211
		r.panic = strings.Clone(r.panic)
		race.Acquire(unsafe.Pointer(&coirTest))
		r.skipped = coirTest != nil && coirTest.Skipped()
		failed := root != nil && root.Failed()
		switch {
		case r.simulates:
			r.kind = "simulates"
		case r.kernelNet != "":
			r.kind = "kernel"
		case r.panicG != 0:
			r.kind, r.text = "panic", strings.TrimSpace(r.panic)
		case (r.endless || r.long) && done && !failed: // a goroutine that was left behind spins
			r.left = true
		case r.endless && x.plain > 0 && x.plain < coirMostBusy/20:
			r.kind = "livelock"
		case r.endless || r.long:
			r.kind = "long"
		case race.Errors() != races:
			r.kind = "race"
		case p != nil && !strings.HasPrefix(fmt.Sprint(p), "deadlock"):
			panic(p)
		case p != nil && !done && x.gaveUp.Load() != coirCycle &&
			(x.gaveUp.Load() == coirWaits || (r.foreign != 0 || r.signals) && !x.inCycle()):
			r.kind = "uncontrolled"
		case failed:
			r.kind = "fail"
			r.left = p != nil
		case p != nil && done:
			r.left = true
		case p != nil:
			r.kind = "deadlock"
			if r.ticking {
				r.text = "only timers go on"
			}
		}
		if r.left {
			x.left++
		}
		if r.skipped && r.kind == "" {
			x.skips++
		}
		if r.within = p != nil && coirWithin(&r); r.touched() {
			x.touched++
		}
		r.output = output.String()
	}()
	was := x.t.tstate.match
	synctest.Run(func() {
		coirQuiet(coirLast)
		ctx, cancel := context.WithCancel(context.Background())
		state := newTestState(1<<20, &matcher{
			filter: was.filter, skip: was.skip, matchFunc: was.matchFunc, subNames: map[string]int32{},
		})
		if *timeout > 0 { // on the virtual clock
			state.deadline = time.Now().Add(*timeout)
		}
		root = &T{
			common: common{
				signal: make(chan bool, 1), barrier: make(chan bool), w: &output, ctx: ctx, cancelCtx: cancel,
				modulePath: x.t.modulePath, importPath: x.t.importPath,
			},
			tstate: state,
		}
		tRunner(root, func(r *T) { r.Run(x.t.name, x.fn) })
		done = true
		x.ended.Store(true)
	})
	return r
}

// allDecisions returns the decisions of the last schedule.
func (r *coirRun) allDecisions() []replay.Decision {
	d := make([]replay.Decision, r.decisions)
	for i := range d {
		ways, way, _, _ := coirDecisionAt(i)
		d[i] = replay.Decision{Way: int(way), Ways: int(ways)}
	}
	return d
}

// explore explores the schedules of the test.
func (x *coirExplorer) explore() {
	fresh := coirSet.fresh >= 0
	x.at.Store(-1)
	var first coirRun
	if !fresh {
		first = x.runPlain() // does not count: it does what a process does only once
	}
	if first.kind == "kernel" {
		x.recordKernel(&first)
		return
	}
	if !fresh && first.kind == "" {
		x.plain = max(first.steps, 1)
	}
	switch {
	case first.kind == "simulates" || first.kind == "long":
		x.recordRun(&first)
		return
	case coirPart.asked && !coirPart.on:
		return
	case coirSet.replay != "":
		x.replay(coirSet.replay)
		return
	case fresh:
		x.alone()
		return
	}
	if first.within { // it may still hold a port, or go on
		x.record("stateful")
		return
	}
	a := x.runPlain()
	b := x.runPlain()
	if b.kind == "kernel" {
		x.recordKernel(&b)
		return
	}
	if a.hash != b.hash && a.outside+b.outside == 0 || a.within || b.within ||
		first.kind == "" && a.kind != "" && a.kind == b.kind {
		x.record("stateful") // its runs differ, or it fails because of what the first run has left behind
		return
	}
	x.traced = a.touched() || b.touched()
	x.handed.Store(x.locks().handed)
	if x.same = a.hash; !a.endless {
		x.plain = max(a.steps, 1)
	}
	x.count, x.left, x.touched, x.skips = 0, 0, 0, 0
	x.began = time.Now()
	s := coirSet.search()
	k := coirReadKept(coirSet.kept, x.failed(), coirSet.seed)
	defer k.write()
	known := coirSet.from == 0 // the decisions determine the schedule, and no schedule was left out
	var leak coirConfig        // of the first schedule that left goroutines behind, whose number is leakFound
	leakFound := 0
	most, until := coirSet.schedules, coirSet.budget
	slow := x.only == "" && coirSet.slow() && a.timed && !a.touched()
	if slow { // keep a part for slowly
		most, until = most-most/5, until-until/5
	}
	for n := 0; x.count < most && (x.count == 0 || time.Since(x.began) < until); {
		c, ok := k.next()
		if !ok && x.only != "" {
			if k.near > 0 {
				continue
			}
			break
		}
		if !ok {
			for ; n < coirSet.from && s.Begin(n); n++ {
			}
			if !s.Begin(n) {
				x.complete = search.Complete(s)
				break
			}
			c = coirSet.config(s, n)
			n++
		}
		c.trace = x.traced
		x.at.Store(int64(n))
		x.used.Store(int64(time.Since(x.began)))
		r := x.run(c)
		if coirSet.races() && r.kind == "" && !r.skipped && n%4 == 2 {
			if q := x.run(coirSet.racingConfig(n / 4)); q.kind == "race" && !coirFailed {
				r = q
			} else if q.left {
				x.left--
			}
		}
		if r.skipped && r.kind == "" && r.decisions == 0 { // there is no other schedule
			break
		}
		known = known && !r.touched() && !r.overflow
		x.leaks(&r)
		k.saw(&r)
		if r.kind == "leak" { // many tests leak in each schedule: continue for a while, to find other failures
			if leakFound == 0 {
				leak, leakFound = r.config.by(replay.Script(r.allDecisions())), x.count
				until = min(until, time.Since(x.began)+coirSet.budget/4)
				slow = false
			}
			r.kind = ""
		}
		switch r.kind {
		case "kernel":
			x.recordKernel(&r)
			return
		case "":
			if r.within && leakFound == 0 {
				x.recordMore()
				return
			}
		case "long", "simulates":
			x.recordRun(&r)
			return
		case "uncontrolled":
			x.recordUncontrolled(&r, coirWaitsFor(&r))
			return
		default:
			x.fail(&r, x.count)
			return
		}
	}
	if leakFound > 0 {
		r := x.run(leak)
		if x.leaks(&r); r.kind != "leak" { // after other schedules it does not leak
			x.record("stateful")
			return
		}
		x.fail(&r, leakFound)
		return
	}
	if x.skips == x.count {
		x.record("skip")
		coirQuiet(0)
		x.t.SkipNow()
	}
	x.complete = x.complete && known
	if all := coirSet.all; known && all != nil && all.Complete() {
		x.all = all.Count()
	}
	if slow && x.slowly() {
		return
	}
	if x.left > 0 { // the note says where they wait
		r := x.run(coirConfig{strategy: search.Stay(), seed: coirSet.seed, trace: true})
		x.count--
		x.recordLeft(&r)
		return
	}
	x.record("pass")
	return
}

// slowly spends the last part of the budget on schedules in which timers also fire while goroutines can run, as they do
// on a slow machine. It reports whether one fails, and was recorded. Only a test that relies on time can fail so.
func (x *coirExplorer) slowly() bool {
	for n := 0; x.count < coirSet.schedules && time.Since(x.began) < coirSet.budget; n++ {
		r := x.run(coirSet.racingConfig(n))
		switch r.kind {
		case "fail", "panic", "deadlock":
			x.slow = true
			return x.fail(&r, x.count)
		case "kernel", "uncontrolled", "long", "simulates":
			return false
		}
		if r.left {
			x.left-- // a timer that fires early may leave something behind
		}
	}
	return false
}

// failed returns the tokens of the schedules to begin with.
func (x *coirExplorer) failed() []string {
	if x.only != "" {
		return []string{x.only}
	}
	return coirSet.failed
}

// runPlain runs the plain schedule, in which the turn passes only when it must.
func (x *coirExplorer) runPlain() coirRun {
	return x.run(coirConfig{strategy: search.Stay(), seed: coirSet.seed, trace: true})
}

// alone runs only one schedule in this process, for a test on which earlier schedules have an effect.
func (x *coirExplorer) alone() {
	s := coirSet.search()
	for i := range coirSet.fresh + 1 {
		if !s.Begin(i) {
			x.record("end")
			return
		}
	}
	c := coirSet.config(s, coirSet.fresh)
	c.trace = true
	if r := x.runShown(c); coirPart.on || !coirPart.asked {
		x.tell(new(coirRecord), r, coirSet.fresh+1, 0)
	}
}

// tell records the outcome of a schedule that is run alone. hash is the hash in its token, or 0. A failure is added to
// rec.
func (x *coirExplorer) tell(rec *coirRecord, r coirRun, number int, hash uint64) {
	x.leaks(&r)
	switch {
	case r.kind == "kernel":
		x.recordKernel(&r)
	case r.misfit || hash != 0 && r.hash&0xffffffff != hash:
		x.recordError("the test does not do what it did when the token was made: it has changed, or depends on " +
			"something outside")
		x.t.Fail()
	case r.kind == "" && r.skipped && r.decisions == 0:
		x.record("skip")
	case r.kind == "":
		x.record("pass")
	case r.kind == "long" || r.kind == "simulates":
		x.recordRun(&r)
	case r.kind == "uncontrolled":
		x.recordUncontrolled(&r, coirWaitsFor(&r))
	default:
		x.recordFailure(rec, &r, r.kind, number, true)
		x.t.Fail()
	}
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

// coirShown says that the schedule is the one that is shown. A debugger reads it; see `coir debug`.
var coirShown bool

// leaks makes a schedule fail that has left goroutines behind, unless the command disables that. A sleeping goroutine
// does not count, because it will continue. If the program waits for signals or in the kernel, no goroutine counts.
func (x *coirExplorer) leaks(r *coirRun) {
	if r.kind != "" || !r.left || !coirSet.leaks || r.signals || r.within || r.skipped {
		return
	}
	for i := 1; i <= r.actors && i < 1<<17; i++ {
		if _, _, _, state, reason, _, _, _ := coirActorAt(i); state == coir.Waiting && reason != "sleep" {
			r.kind = "leak"
			return
		}
	}
}

// fail makes a failure smaller and records it. It reports whether it did: a failure of slowly is left alone if it is not
// stable.
func (x *coirExplorer) fail(r *coirRun, found int) bool {
	kind := r.kind
	x.known = r.ticking
	outside := r.touched()
	if outside {
		x.keep(r, found)
	}
	failed := replay.Run{Fails: true, Decisions: r.allDecisions(), Steps: int(r.steps)}
	script := replay.Script(failed.Decisions)
	if outside {
		// A run of the plain schedule would prove nothing.
	} else if plain := x.runPlain(); plain.hash != x.same && plain.outside == 0 {
		// The schedule has left something behind, perhaps a locked global mutex. Later results of this process would
		// mean nothing.
		if x.slow {
			return false
		}
		x.recordAgain(coirEncode(r.config, script, 0), found)
		x.t.Fail()
		return true
	}
	second := x.run(r.config.by(script))
	x.leaks(&second)
	stable := second.kind == kind && second.hash == r.hash
	if second.kind == kind {
		var course search.Course
		began := time.Now()
		run := func() replay.Run {
			if outside && time.Since(began) > coirShrinkOutside {
				return replay.Run{Steps: coirCutSteps + coirSearchSteps}
			}
			c := r.config.by(nil)
			c.strategy = &course
			q := x.run(c)
			x.leaks(&q)
			p := replay.Run{Fails: q.kind == kind, Decisions: q.allDecisions(), Steps: int(q.steps)}
			if !p.Fails {
				return p
			}
			if turns, values, ok := course.Ran(); ok {
				p.Course = &replay.Course{Turns: turns, Values: values}
			}
			return p
		}
		script, _ = replay.Shrink(failed, func(script []int) replay.Run {
			course.Script(script)
			return run()
		}, func(c *replay.Course) replay.Run {
			course.Follow(c.Turns, c.Values)
			return run()
		}, coirCutSteps, coirSearchSteps)
	}
	c := r.config.by(script)
	if second.kind != kind && r.lost && search.Again(r.config.strategy) {
		c, stable = r.config, true // not all decisions were recorded: the strategy makes them again
	}
	var rec coirRecord
	if stable && !outside {
		x.twin(&rec, c, kind)
	}
	c.trace = true
	last := x.runShown(c)
	x.leaks(&last)
	if last.kind != kind {
		stable = false
	}
	if kept := x.kept.Load(); kept != nil && last.kind != kind { // write the record of the schedule that failed first
		os.Stdout.WriteString("\x16coir begin\n\x16coir end\n")
		kept.write()
		x.t.Fail()
		return true
	}
	if x.slow && !stable {
		return false
	}
	x.recordFailure(&rec, &last, kind, found, stable)
	if !x.slow {
		x.t.Fail()
	}
	return true
}

// replay runs the schedule of a token: once to find its twin, unless each schedule has a process of its own, and then with
// a trace for the report.
func (x *coirExplorer) replay(token string) {
	c, hash, err := coirDecode(token)
	if err != "" {
		x.recordError("the token " + token + " " + err)
		x.t.Fail()
		return
	}
	var rec coirRecord
	if coirSet.fresh < 0 {
		r := x.run(c.again())
		if r.kind == "kernel" {
			x.recordKernel(&r)
			return
		}
		x.known = r.ticking                            // as when the failure was found
		if r.hash&0xffffffff == hash && !r.touched() { // so that the report is the same
			x.leaks(&r)
			x.twin(&rec, c, r.kind)
		}
	}
	c.trace = true
	x.tell(&rec, x.runShown(c.again()), 1, hash)
}

// coirRWMutex is the lock of a T. It has no points.
type coirRWMutex struct{ rw sync.RWMutex }

func (m *coirRWMutex) Lock()    { was := coirQuiet(1); m.rw.Lock(); coirQuiet(was) }
func (m *coirRWMutex) Unlock()  { was := coirQuiet(1); m.rw.Unlock(); coirQuiet(was) }
func (m *coirRWMutex) RLock()   { was := coirQuiet(1); m.rw.RLock(); coirQuiet(was) }
func (m *coirRWMutex) RUnlock() { was := coirQuiet(1); m.rw.RUnlock(); coirQuiet(was) }

var _ unsafe.Pointer // for go:linkname
