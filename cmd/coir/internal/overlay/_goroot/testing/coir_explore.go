package testing

import (
	"internal/coir"
	"internal/replay"
	"internal/search"
	"strings"
	"sync/atomic"
	"time"
)

// coirExplorer explores one test, or a part of one.
type coirExplorer struct {
	t     *T
	fn    func(*T)
	only  string // a token: run its schedule and some similar ones
	began time.Time

	count      int          // schedules
	racing     int          // of count, those with a racing clock, as on a slow machine
	repeated   int          // of count, those that repeated an earlier schedule
	shrinks    int          // of repeated, those that shrank a failure
	ranSaved   int          // of count, those of earlier failures, as they were saved
	ranToken   int          // of count, those of explore.Replay, as they were found
	ranKept    int          // of count, the other ones that -for has kept
	decided    bool         // a schedule had a decision, so there are other schedules
	timeUp     bool         // the search ended because the budget was spent
	begun      atomic.Int64 // all schedules, including those not in count; watch uses it
	skips      int          // ordinary schedules in which the test skips the rest
	leftBehind int          // schedules of the search that left goroutines behind
	left       coirConfig   // the first of them
	trace      uint64       // a hash of the hashes of all schedules
	complete   bool         // the strategy has run all its schedules
	all        int          // the number of schedules within the bound, if all were run

	plainSteps uint64 // the steps of the plain schedule
	plainHash  uint64
	purpose    coirPurpose
	onlyTimers bool // only timers make progress in the deadlock that is run again
	slow       bool // searchSlowly runs
	asNote     bool // the failure that searchSlowly found is only a note
	noSlow     bool // the test has timers, but searchSlowly does not run, because each schedule has a process of its own
	once       int  // failures that did not happen again
	recovers   bool // a schedule that passes fails if a handler panicked in it

	spent func() time.Duration // the time spent on the failure that is reported

	recovered int           // schedules of the search in which a handler panicked
	recovery  *coirRecovery // the first of them

	coirKernel
}

// coirPurpose says why a schedule is run. Only a schedule that is run to search for a failure counts as explored.
type coirPurpose uint8

const (
	coirSearches  coirPurpose = iota // for a failure
	coirRepeats                      // a failure, or the plain schedule
	coirShrinks                      // a failure
	coirSeeksTwin                    // of a failure
)

// sweeps reports whether schedules with the purpose collect garbage before a deadlock. While a failure is made smaller,
// a schedule that deadlocked does so without that.
func (p coirPurpose) sweeps() bool { return p == coirSearches || p == coirRepeats }

// awaitsOutside reports whether to wait for goroutines outside before a schedule is a deadlock. That is slow, so a
// failure is made smaller without it, unless something came from outside when it was found.
func (x *coirExplorer) awaitsOutside() bool {
	switch x.purpose {
	case coirSearches, coirRepeats:
		return true
	case coirShrinks:
		return x.failing.Load()
	}
	return false
}

// during sets the purpose of the following schedules. The function that it returns sets the purpose before.
func (x *coirExplorer) during(p coirPurpose) (restore func()) {
	before := x.purpose
	x.purpose = p
	return func() { x.purpose = before }
}

// explore explores the schedules of the test in four phases. Each phase but the last may end the exploration. If so, it
// has recorded the result.
func (x *coirExplorer) explore() {
	coirSights = nil
	x.at.Store(-1)
	first, ok := x.warmUp()
	if !ok {
		return
	}
	plain, ok := x.runTwice(&first)
	if !ok {
		return
	}
	s := x.newSearch(&plain)
	defer s.kept.write()
	if x.search(s) {
		x.conclude(s)
	}
}

// warmUp is the first phase. It runs the plain schedule, so that operations that a process performs only once are done.
// So this run does not count. It reports false if the test cannot be explored in this process, or if the command asks
// for one schedule only.
func (x *coirExplorer) warmUp() (first coirRun, ok bool) {
	runsOne := coirSet.only >= 0
	if !runsOne {
		first = x.runPlain()
	}
	if !runsOne && first.kind == coir.KindPass {
		x.plainSteps = max(first.Steps, 1)
	}
	switch {
	case first.kind == coir.KindKernel:
		x.recordKernel(&first)
	case first.kind == coir.KindSimulates || first.kind == coir.KindLong:
		x.recordRun(&first)
	case coirPart.asked && !coirPart.on: // the parts of the test will be explored
	case coirSet.replay != "":
		x.replay(coirSet.replay)
	case runsOne:
		x.alone()
	case first.inKernel: // the goroutine may still hold a port, or continue later
		x.record(coir.VerdictStateful)
	default:
		return first, true
	}
	return first, false
}

// runTwice is the second phase. It runs the plain schedule twice and compares the runs. If they differ, earlier
// schedules influence later ones, and each schedule needs a new process. It returns the first of the two runs.
func (x *coirExplorer) runTwice(first *coirRun) (a coirRun, ok bool) {
	a = x.runPlain()
	b := x.runPlain()
	if b.kind == coir.KindKernel {
		x.recordKernel(&b)
		return a, false
	}
	differ := a.Hash != b.Hash && a.Outside+b.Outside == 0
	failsAfterFirst := first.kind == coir.KindPass && a.kind != coir.KindPass && a.kind == b.kind
	if differ || a.inKernel || b.inKernel || failsAfterFirst {
		x.record(coir.VerdictStateful)
		return a, false
	}
	x.traced = a.touched() || b.touched()
	x.handed.Store(x.locks().handed())
	if x.plainHash = a.Hash; !a.TooBusy {
		x.plainSteps = max(a.Steps, 1)
	}
	return a, true
}

// coirMostOnce is the number of failures that the search ignores because they did not happen again. Such a failure may
// have depended on something that a process does only once. The search continues, and may find the failure again.
const coirMostOnce = 3

// coirSearch is the state of the search for a failure.
type coirSearch struct {
	strategy  search.Strategy
	kept      *coirKept
	next      int           // the number of the strategy's next schedule
	schedules int           // the most schedules to run
	budget    time.Duration // the longest time to spend
	slowLast  bool          // the last fifth of schedules and budget is for searchSlowly
	exact     bool          // the decisions determine each schedule, and no schedule was left out
	mild      coirConfig    // a schedule with a failure that may hide a worse one; see isMild
	mildKind  coir.Kind     // how it failed
	mildFound int           // the number of that schedule; 0: there is none
}

// newSearch returns a new search, and restarts the counts of schedules and time.
func (x *coirExplorer) newSearch(plain *coirRun) *coirSearch {
	x.count, x.racing, x.repeated, x.leftBehind, x.touched, x.skips = 0, 0, 0, 0, 0, 0
	x.shrinks, x.ranSaved, x.ranToken, x.ranKept = 0, 0, 0, 0
	x.recovered, x.recovery, x.recovers = 0, nil, plain.Recovered == 0
	x.began = time.Now()
	s := &coirSearch{
		strategy: coirSet.search(), kept: coirReadKept(coirSet.kept, x.failed(), coirSet.seed),
		schedules: coirSet.schedules, budget: coirSet.budget, exact: coirSet.from == 0,
	}
	s.slowLast = x.only == "" && coirSet.slow() && plain.UsesTime && !plain.touched()
	if s.slowLast {
		s.schedules -= s.schedules / 5
		s.budget -= s.budget / 5
	}
	return s
}

// search is the third phase. It runs schedules until one fails, a limit is reached, or there are no more. It reports
// false if it has recorded the result.
func (x *coirExplorer) search(s *coirSearch) bool {
	for x.count < s.schedules {
		if x.timeUp = x.count > 0 && time.Since(x.began) >= s.budget; x.timeUp {
			break
		}
		c, ok := x.next(s)
		if !ok {
			break
		}
		r := x.runNext(s, c)
		if r.skipped && r.kind == coir.KindPass && r.Decisions == 0 { // there is no other schedule
			break
		}
		s.exact = s.exact && !r.touched() && !r.Overflow
		x.leaks(&r)
		s.kept.saw(&r)
		if x.needsTooSlow(&r) {
			r.kind = coir.KindPass
		}
		if r.isMild() {
			x.noteMild(s, &r)
			r.kind = coir.KindPass
		}
		if x.ends(s, &r) {
			return false
		}
	}
	return true
}

// next returns the next schedule to run: a kept schedule, a branch of a kept schedule, or the next one of the strategy.
// It reports false if there are no more.
func (x *coirExplorer) next(s *coirSearch) (c coirConfig, ok bool) {
	c, ok = s.kept.next()
	for !ok && x.only != "" && s.kept.near > 0 { // it is the strategy's turn, but with a token there is no strategy
		c, ok = s.kept.next()
	}
	if ok || x.only != "" {
		return c, ok
	}
	for ; s.next < coirSet.from && s.strategy.Begin(s.next); s.next++ {
	}
	if !s.strategy.Begin(s.next) {
		x.complete = search.Complete(s.strategy)
		return c, false
	}
	c = coirSet.config(s.strategy, s.next)
	s.next++
	return c, true
}

// runNext runs a schedule of the search. After some schedules that pass it also runs a schedule with a racing clock,
// and returns that if it has a data race.
func (x *coirExplorer) runNext(s *coirSearch, c coirConfig) coirRun {
	c.Trace = x.traced
	switch {
	case c.saved && x.only != "":
		x.ranToken++
	case c.saved:
		x.ranSaved++
	case c.kept:
		x.ranKept++
	}
	x.at.Store(int64(s.next))
	x.used.Store(int64(time.Since(x.began)))
	r := x.run(c)
	if !coirSet.races() || r.kind != coir.KindPass || r.skipped || s.next%4 != 2 {
		return r
	}
	racing := x.run(coirSet.racingConfig(s.next / 4))
	if racing.kind == coir.KindRace && !coirFailed {
		return racing
	}
	return r
}

// isMild reports whether the search continues for a while after a failure, because that may hide a worse one. Many
// tests leak in every schedule. With -racing, many fail as soon as a timer fires early.
func (r *coirRun) isMild() bool {
	late := r.kind == coir.KindFail && coirSet.racing && r.config.Racing > 0
	return r.kind == coir.KindLeak || late && !r.touched() && !r.LostDecision
}

// noteMild keeps the first mild failure, or the first that is not a leak, and shortens the search.
func (x *coirExplorer) noteMild(s *coirSearch, r *coirRun) {
	if s.mildFound != 0 && (s.mildKind != coir.KindLeak || r.kind == coir.KindLeak) {
		return
	}
	s.mild, s.mildKind, s.mildFound = r.config.by(replay.Script(r.allDecisions())), r.kind, x.count
	s.budget = min(s.budget, time.Since(x.began)+coirSet.budget/4)
	s.slowLast = false
}

// ends reports whether the search ends with the schedule r. If so, it has recorded the reason.
func (x *coirExplorer) ends(s *coirSearch, r *coirRun) bool {
	switch r.kind {
	case coir.KindPass:
		if !r.inKernel || s.mildFound != 0 {
			return false
		}
		x.recordMore()
	case coir.KindKernel:
		x.recordKernel(r)
	case coir.KindLong, coir.KindSimulates:
		x.recordRun(r)
	case coir.KindUncontrolled:
		x.recordUncontrolled(r, coirWaitsFor(r))
	default:
		return x.fail(r, x.count)
	}
	return true
}

// conclude is the last phase, after a search without a failure that is not mild. It records the result.
func (x *coirExplorer) conclude(s *coirSearch) {
	if s.mildFound > 0 {
		x.failMild(s)
		return
	}
	if count, _ := x.tally(coir.VerdictSkip); x.skips > 0 && x.skips == count {
		x.record(coir.VerdictSkip)
		coirQuiet(coir.QuietNot)
		x.t.SkipNow()
	}
	x.complete = x.complete && s.exact
	if all := coirSet.all; s.exact && all != nil && all.Complete() {
		x.all = all.Count()
	}
	if s.slowLast && x.searchSlowly() {
		return
	}
	if never := coirNever(); never != nil {
		x.recordNever(never)
		x.t.Fail()
		return
	}
	if x.leftBehind > 0 { // the note says where they wait
		x.purpose = coirRepeats
		c := x.left
		c.Trace = true
		r := x.run(c)
		x.recordLeft(&r)
		return
	}
	x.record(coir.VerdictPass)
}

// failMild runs the schedule with the mild failure again, and records it.
func (x *coirExplorer) failMild(s *coirSearch) {
	r := x.run(s.mild)
	if x.leaks(&r); r.kind != s.mildKind { // it does not fail so after other schedules
		x.record(coir.VerdictStateful)
		return
	}
	if !x.fail(&r, s.mildFound) {
		x.record(coir.VerdictStateful)
	}
}

// searchSlowly spends the last part of the budget on schedules in which timers also fire while goroutines can run, as
// they do on a slow machine. It reports whether it has recorded a failure. A cycle of locks and a panic are bugs on
// every machine, because a timer may fire at any moment on a slow one. Other failures of the test and other deadlocks
// may only mean that the test relies on time: for example, the goroutine that a deadlocked one waits for may have timed
// out. searchSlowly keeps such a failure, unless it needs a machine that is too slow, and records it as a note if it
// finds no bug.
func (x *coirExplorer) searchSlowly() bool {
	x.slow = true
	var kept *coirFailure
	for n := 0; x.count < coirSet.schedules && time.Since(x.began) < coirSet.budget; n++ {
		r := x.run(coirSet.racingConfig(n))
		switch {
		case r.kind == coir.KindPanic, r.kind == coir.KindDeadlock && x.inCycle():
			if x.asNote = r.logsLate(); x.fail(&r, x.count) {
				return true
			}
			continue
		case r.kind == coir.KindFail, r.kind == coir.KindDeadlock:
			if kept != nil || x.needsTooSlow(&r) {
				continue
			}
			kept = newFailure(&r, x.count)
			restore := x.during(coirRepeats)
			stop := kept.outside || x.isSpoiled()
			if restore(); stop {
				return x.reportNote(kept)
			}
			continue
		case r.kind == coir.KindKernel, r.kind == coir.KindUncontrolled, r.kind == coir.KindLong,
			r.kind == coir.KindSimulates:
			return x.reportNote(kept)
		}
	}
	return x.reportNote(kept)
}

// needsTooSlow reports whether a failure may only mean that the test relies on time, and needs a machine that is too
// slow for that. r must be the last schedule.
func (x *coirExplorer) needsTooSlow(r *coirRun) bool {
	if r.config.Racing == 0 || r.Early <= coir.MostSlow {
		return false
	}
	return r.kind == coir.KindFail || r.kind == coir.KindLeak || r.kind == coir.KindDeadlock && !x.inCycle()
}

// logsLate reports whether a schedule panicked because a test logged after its end.
func (r *coirRun) logsLate() bool {
	return r.kind == coir.KindPanic && strings.Contains(r.text, "Log in goroutine after ")
}

// reportNote reports f, if not nil, as a note.
func (x *coirExplorer) reportNote(f *coirFailure) bool {
	x.asNote = true
	return f != nil && x.report(f)
}

// failed returns the tokens of the schedules that the search begins with.
func (x *coirExplorer) failed() []string {
	if x.only != "" {
		return []string{x.only}
	}
	return coirSet.failed
}

// alone runs only one schedule in this process, for a test that earlier schedules would influence.
func (x *coirExplorer) alone() {
	s := coirSet.search()
	for i := range coirSet.only + 1 {
		if !s.Begin(i) {
			x.record(coir.VerdictEnd)
			return
		}
	}
	c := coirSet.config(s, coirSet.only)
	c.Trace = true
	r := x.runShown(c)
	x.noSlow = coirSet.slow() && r.UsesTime
	if coirPart.on || !coirPart.asked {
		x.tell(new(coirRecord), r, 1, 0) // the command adds those of other processes
	}
}

// replay runs the schedule of a token: first to find its twin, unless each schedule has its own process, and then with
// a trace for the report.
func (x *coirExplorer) replay(token string) {
	c, hash, err := coirDecode(token)
	if err != "" {
		x.recordError("cannot read " + token + ": " + err)
		x.t.Fail()
		return
	}
	var rec coirRecord
	x.recovers = true
	if coirSet.only < 0 {
		r := x.run(c.again())
		if r.kind == coir.KindKernel {
			x.recordKernel(&r)
			return
		}
		x.onlyTimers = r.OnlyTimers                    // as when the failure was found
		if r.Hash&0xffffffff == hash && !r.touched() { // so that the report is the same
			x.leaks(&r)
			x.twin(&rec, c, r.kind)
			x.idleFaults(&rec, c, r.kind)
		}
	}
	c.Trace = true
	x.tell(&rec, x.runShown(c.again()), 1, hash)
}

// tell records the outcome of a schedule that is run alone. hash is the hash in its token, or 0. A failure is added to
// rec.
func (x *coirExplorer) tell(rec *coirRecord, r coirRun, number int, hash uint64) {
	x.leaks(&r)
	switch {
	case r.kind == coir.KindKernel:
		x.recordKernel(&r)
	case r.Misfit || hash != 0 && r.Hash&0xffffffff != hash:
		x.record(coir.VerdictChanged)
		x.t.Fail()
	case r.kind == coir.KindPass && r.skipped && r.Decisions == 0:
		x.record(coir.VerdictSkip)
	case r.kind == coir.KindPass:
		x.record(coir.VerdictPass)
	case r.kind == coir.KindLong || r.kind == coir.KindSimulates:
		x.recordRun(&r)
	case r.kind == coir.KindUncontrolled:
		x.recordUncontrolled(&r, coirWaitsFor(&r))
	default:
		x.recordFailure(rec, &r, r.kind, number, true)
		x.t.Fail()
	}
}
