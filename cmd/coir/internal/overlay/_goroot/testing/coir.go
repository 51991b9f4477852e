package testing

import (
	"bytes"
	"context"
	"fmt"
	"internal/coir"
	"internal/race"
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

// This file explores the schedules of a test for `coir test`. If the process is to explore, tRunner calls coirExplore in
// place of the test's function. That runs the function again and again, each time in a bubble of its own, by the
// decisions that the search (coir_search.go) has made up; and writes down what it found (coir_record.go) for the command,
// which has started the process and tells its user.

// What package runtime has for this; see coir.go there.

//go:linkname coirBegin
func coirBegin(c *coirConfig)

//go:linkname coirFinish
func coirFinish(out *coirOutcome)

//go:linkname coirQuiet
func coirQuiet(q uint32) uint32

//go:linkname coirDecisionAt
func coirDecisionAt(i int) (ways, way uint16, kind uint8, step uint32)

//go:linkname coirStepAt
func coirStepAt(i int, pcs []uintptr) (g, obj uint32, op uint8, at int64, npc int)

//go:linkname coirActorAt
func coirActorAt(i int) (parent uint32, gopc uintptr, op, state uint8, reason string, obj, step uint32, since int64)

//go:linkname coirActorPCs
func coirActorPCs(i int, pcs []uintptr) int

//go:linkname coirHeapLive
func coirHeapLive() uint64

//go:linkname coirSetProcs
func coirSetProcs(n int)

//go:linkname coirTakeTurn
func coirTakeTurn() (what int)

type coirConfig struct {
	given   []uint16
	tail    int
	seed    uint64
	stay    uint64
	racing  uint64
	changes []uint64
	limit   uint64
	ticks   uint64
	trace   bool
	collect bool
}

type coirOutcome struct {
	steps, hash uint64
	decisions   int
	actors      int
	endless     bool
	ticking     bool
	misfit      bool
	overflow    bool
	outside     uint32
	foreign     uint32
	signals     bool
	panicG      uint32
	panic       string
}

// coirSettings are the command's wishes, from the environment: COIR_TEST=name=value,name=value.
type coirSettings struct {
	on        bool
	strategy  string
	seed      uint64
	schedules int
	budget    time.Duration
	bound     int
	racing    bool
	replay    string
	record    string // the file to write to
	leaks     bool
	fresh     int // run the schedule with this number alone, in a process that has run no other; -1: explore
}

var coirSet = coirParse(os.Getenv("COIR_TEST"))

func coirParse(env string) coirSettings {
	s := coirSettings{
		on: env != "", strategy: "default", seed: 1, schedules: 10000, budget: time.Second, bound: 2, leaks: true, fresh: -1,
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
		case "leaks":
			s.leaks = value == "true"
		case "fresh":
			s.fresh = n
		}
	}
	s.record = os.Getenv("COIR_RECORD")
	os.Unsetenv("COIR_TEST") // a test may run itself again, in a process that is not to explore
	os.Unsetenv("COIR_RECORD")
	return s
}

// coirExplores reports whether the schedules of t are to be explored. Otherwise tRunner runs it: it is a part of the
// schedule that runs, or nothing is explored.
func coirExplores(t *T) bool {
	if !coirSet.on || t.parent == nil || t.level != 1 {
		return false
	}
	if coir.On && synctest.IsInBubble() {
		coirTest = t
		return false
	}
	return true
}

// coirExplore explores the schedules of a test.
func coirExplore(t *T, fn func(*T)) {
	// A collection takes no turn, but a schedule should not pay for those before it.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(2 << 30))
	procs := runtime.GOMAXPROCS(1) // one goroutine runs at a time: others would only look for work
	defer runtime.GOMAXPROCS(procs)
	coirSetProcs(procs)
	x := &coirExplorer{t: t, fn: fn, began: time.Now()}
	stop := make(chan bool)
	go x.watch(stop)
	defer close(stop)
	x.explore()
}

// coirTest is the test of the schedule that runs.
var coirTest *T

// coirRun is a schedule that has been run.
type coirRun struct {
	coirOutcome
	config  coirConfig
	kind    string // of failure; "" if it passed
	text    string
	left    bool // it passed, and left goroutines behind
	skipped bool
	output  string
}

type coirExplorer struct {
	t     *T
	fn    func(*T)
	began time.Time
	count int
	plain uint64       // steps of the plain schedule
	same  uint64       // its hash
	known bool         // a failure has been found, and is being made smaller
	begun atomic.Int64 // all schedules, for watch
	left  int          // schedules that left goroutines behind
}

// A schedule is given up after so many steps without a moment at which all goroutines wait; and after so many moves of the
// clock in which the test's own goroutine made no step, and no goroutine began or ended.
const coirMostSteps, coirMostTicks = 5_000_000, 200_000

// run runs one schedule.
func (x *coirExplorer) run(c coirConfig) (r coirRun) {
	if coirHeapLive() > 64<<20 {
		runtime.GC()
	}
	c.limit, c.ticks, c.collect = coirMostSteps, coirMostTicks, coirSet.leaks
	if x.known {
		c.ticks /= 10
	}
	var root *T
	var output bytes.Buffer
	done := false
	races := race.Errors()
	coirTest = nil
	x.count++
	x.begun.Add(1)
	coirBegin(&c)
	defer func() {
		p := recover()
		if p != nil && !done { // a goroutine outside may still wake them
			time.Sleep(20 * time.Millisecond)
		}
		r.config = c
		coirFinish(&r.coirOutcome)
		r.panic = strings.Clone(r.panic)
		r.skipped = coirTest != nil && coirTest.Skipped()
		failed := root != nil && root.Failed()
		switch {
		case r.panicG != 0:
			r.kind, r.text = "panic", r.panic
		case r.endless && done && !failed: // what is left behind spins
			r.left = true
		case r.endless && x.plain > 0 && x.plain < coirMostSteps/20:
			r.kind = "livelock"
		case r.endless:
			r.kind = "long"
		case race.Errors() != races:
			r.kind = "race"
		case p != nil && !strings.HasPrefix(fmt.Sprint(p), "deadlock"):
			panic(p)
		case p != nil && !done && (r.foreign != 0 || r.signals):
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
		r.output = output.String()
	}()
	was := x.t.tstate.match
	synctest.Run(func() {
		coirQuiet(1)
		ctx, cancel := context.WithCancel(context.Background())
		state := newTestState(1<<20, &matcher{
			filter: was.filter, skip: was.skip, matchFunc: was.matchFunc, subNames: map[string]int32{},
		})
		state.deadline = x.t.tstate.deadline
		root = &T{
			common: common{
				signal: make(chan bool, 1), barrier: make(chan bool), w: &output, ctx: ctx, cancelCtx: cancel,
				modulePath: x.t.modulePath, importPath: x.t.importPath,
			},
			tstate: state,
		}
		tRunner(root, func(r *T) { r.Run(x.t.name, x.fn) })
		done = true
	})
	return r
}

// allDecisions reads what was decided in the last schedule.
func (r *coirRun) allDecisions() []coirDecision {
	d := make([]coirDecision, r.decisions)
	for i := range d {
		d[i].ways, d[i].way, d[i].kind, d[i].step = coirDecisionAt(i)
	}
	return d
}

func (x *coirExplorer) explore() {
	fresh := coirSet.fresh >= 0
	if !fresh {
		x.runPlain() // what is made once in a process is made in a schedule that does not count
	}
	switch {
	case coirSet.replay != "":
		x.replay(coirSet.replay)
		return
	case fresh:
		x.alone()
		return
	}
	a, b := x.runPlain(), x.runPlain()
	if a.hash != b.hash && a.outside+b.outside == 0 {
		x.record("stateful")
		return
	}
	if x.same = a.hash; !a.endless {
		x.plain = max(a.steps, 1)
	}
	x.count, x.left = 0, 0
	x.began = time.Now()
	s := newCoirSearch(coirSet)
	for x.count < coirSet.schedules && (x.count == 0 || time.Since(x.began) < coirSet.budget) {
		c, ok := s.next()
		if !ok {
			break
		}
		r := x.run(c)
		if r.skipped && r.kind == "" {
			x.record("skip")
			coirQuiet(0)
			x.t.SkipNow()
		}
		d := r.allDecisions()
		s.done(&r, d)
		x.leaks(&r)
		switch r.kind {
		case "":
		case "long":
			x.record("long")
			return
		case "uncontrolled":
			x.recordUncontrolled(coirWaitsFor(&r))
			return
		default:
			x.fail(&r, d)
			return
		}
	}
	if x.left > 0 { // for the note: where they wait
		r := x.runPlain()
		x.count--
		x.recordLeft(&r)
		return
	}
	x.record("pass")
}

// runPlain runs the schedule in which the turn passes only when it must.
func (x *coirExplorer) runPlain() coirRun { return x.run(coirConfig{seed: coirSet.seed}) }

// alone runs one schedule of a test for which earlier schedules of the process make a difference.
func (x *coirExplorer) alone() {
	var c coirConfig
	s := newCoirSearch(coirSet)
	for range coirSet.fresh + 1 {
		c, _ = s.next()
	}
	c.trace = true
	x.tell(x.runShown(c), coirSet.fresh+1, 0)
}

// tell writes down what became of a schedule that is run alone. hash is that of its token, or 0.
func (x *coirExplorer) tell(r coirRun, number int, hash uint64) {
	x.leaks(&r)
	switch {
	case r.misfit || hash != 0 && r.hash&0xffffffff != hash:
		x.recordError("the test does not do what it did when the token was made: it has changed, or depends on " +
			"something outside")
		x.t.Fail()
	case r.kind == "" && r.skipped:
		x.record("skip")
	case r.kind == "":
		x.record("pass")
	case r.kind == "uncontrolled":
		x.recordUncontrolled(coirWaitsFor(&r))
	default:
		x.recordFailure(&r, r.kind, number, true)
		x.t.Fail()
	}
}

// runShown runs a schedule whose output the command shows.
func (x *coirExplorer) runShown(c coirConfig) coirRun {
	os.Stdout.WriteString("\x16coir begin\n")
	r := x.run(c)
	os.Stdout.WriteString("\x16coir end\n")
	return r
}

// leaks makes a schedule fail that has left goroutines behind, unless the command does not want that. One that sleeps
// will go on, and so may any if signals are still wanted.
func (x *coirExplorer) leaks(r *coirRun) {
	if r.kind != "" || !r.left || !coirSet.leaks || r.signals {
		return
	}
	for i := 1; i <= r.actors && i < 1<<17; i++ {
		if _, _, _, state, reason, _, _, _ := coirActorAt(i); state == 1 && reason != "sleep" {
			r.kind = "leak"
			return
		}
	}
}

// fail makes a failure small and writes it down.
func (x *coirExplorer) fail(r *coirRun, d []coirDecision) {
	found := x.count
	kind := r.kind
	x.known = true
	try := func(given []uint16) (*coirRun, []coirDecision) {
		q := x.run(coirConfig{given: given, seed: r.config.seed, racing: r.config.racing})
		x.leaks(&q)
		return &q, q.allDecisions()
	}
	if plain := x.runPlain(); plain.hash != x.same && plain.outside == 0 {
		// It has left something behind, perhaps a global lock that is held: what follows in this process means nothing.
		x.recordAgain(coirEncode(r.config, coirTrim(d), 0), found)
		x.t.Fail()
		return
	}
	again, ad := try(coirTrim(d))
	stable := again.kind == kind && again.hash == r.hash
	small := coirTrim(d)
	if again.kind == kind {
		small = coirShrink(coirTrim(ad), kind, try)
	}
	last := x.runShown(coirConfig{given: small, seed: r.config.seed, racing: r.config.racing, trace: true})
	x.leaks(&last)
	if last.kind != kind {
		stable = false
	}
	x.recordFailure(&last, kind, found, stable)
	x.t.Fail()
}

func (x *coirExplorer) replay(token string) {
	c, hash, err := coirDecode(token)
	if err != "" {
		x.recordError("the token " + token + " " + err)
		x.t.Fail()
		return
	}
	c.trace = true
	x.tell(x.runShown(c), 1, hash)
}

// watch looks after the schedule in real time.
func (x *coirExplorer) watch(stop chan bool) {
	coirQuiet(1)
	last, same := 0, 0
	begun, since := int64(0), time.Now()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for { // without allocations: the test may count them
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
		what := coirTakeTurn()
		if same++; what == 0 || what != last {
			last, same = what, 0
		}
		if n := x.begun.Load(); n != begun { // the race detector sees this package, too
			begun, since = n, time.Now()
		}
		if time.Since(since) > 30*time.Second {
			what, same = coirLong, 100
		}
		switch {
		case what == 2 && same == 100, what == 1 && same == 100, what == 3 && same == 1000, what == coirLong:
			x.recordUncontrolled(what)
			os.Exit(3)
		}
	}
}

// coirRWMutex is the lock of a T. It has no points.
type coirRWMutex struct{ rw sync.RWMutex }

func (m *coirRWMutex) Lock()    { was := coirQuiet(1); m.rw.Lock(); coirQuiet(was) }
func (m *coirRWMutex) Unlock()  { was := coirQuiet(1); m.rw.Unlock(); coirQuiet(was) }
func (m *coirRWMutex) RLock()   { was := coirQuiet(1); m.rw.RLock(); coirQuiet(was) }
func (m *coirRWMutex) RUnlock() { was := coirQuiet(1); m.rw.RUnlock(); coirQuiet(was) }

var _ unsafe.Pointer // for go:linkname
