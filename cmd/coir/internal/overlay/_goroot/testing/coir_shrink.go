package testing

import (
	"internal/coir"
	"internal/replay"
	"internal/search"
	"os"
	"strconv"
	"time"
)

// coirFailure is a failure that is being shrunk.
type coirFailure struct {
	*coirRun      // the schedule that failed
	found    int  // the number of that schedule
	outside  bool // something came from outside, so that it may not fail again
	decided  []replay.Decision
	script   []int // the decisions of the smallest schedule that fails in the same way
	repeats  bool  // the script of the schedule that failed has failed again in the same way
	stable   bool  // that run also had the same trace, and the last run failed in the same way
}

// fail repeats a failure, shrinks it and records it. It does not shrink the schedule of a saved failure, which was
// shrunk before it was saved. It reports whether it recorded the failure. It ignores a failure of searchSlowly that
// is not stable, and the first coirMostOnce failures that do not happen again.
func (x *coirExplorer) fail(r *coirRun, found int) bool { return x.report(newFailure(r, found)) }

// newFailure returns the failure of r, which must be the last schedule, with its decisions.
func newFailure(r *coirRun, found int) *coirFailure {
	f := &coirFailure{coirRun: r, found: found, outside: r.touched(), decided: r.allDecisions()}
	f.script = replay.Script(f.decided)
	return f
}

func (x *coirExplorer) report(f *coirFailure) bool {
	var rec coirRecord
	x.onlyTimers, x.spent = f.OnlyTimers, coirClock()
	defer func() { x.onlyTimers = false }()
	defer x.during(coirRepeats)()
	if f.outside {
		x.keep(f.coirRun, f.found)
	} else if x.isSpoiled() {
		return x.runElsewhere(f)
	}
	x.repeat(f)
	if f.repeats && f.config.saved {
		rec.add("saved")
	} else if f.repeats {
		x.shrink(&rec, f)
	} else if x.once < coirMostOnce && !f.outside && f.kind != coir.KindLeak {
		x.once++
		return false
	}
	c := f.smallest()
	if f.stable && !f.outside {
		x.twin(&rec, c, f.kind)
		x.idleFaults(&rec, c, f.kind)
	}
	return x.recordShown(f, &rec, c)
}

// isSpoiled reports whether the plain schedule has changed, because the failure has left something behind, such as a
// locked global mutex. Then later results of this process would mean nothing. It must not be called for a failure in
// which something came from outside, because the plain schedule may then change by itself.
func (x *coirExplorer) isSpoiled() bool {
	plain := x.runPlain()
	return plain.Hash != x.plainHash && plain.Outside == 0
}

// runElsewhere asks the command to run the failing schedule in another process.
func (x *coirExplorer) runElsewhere(f *coirFailure) bool {
	if x.asNote {
		return false
	}
	x.recordAgain(coirEncode(f.config, f.script, 0), f.found)
	x.t.Fail()
	return true
}

// repeat runs the decisions of the failure again. The first run may have done something that a process does only once,
// such as loading the time zone for a log. So if the second run differs from the first, but a third run is the same as
// the second, the third run counts.
func (x *coirExplorer) repeat(f *coirFailure) {
	again := func() (r coirRun) {
		c := f.config.by(f.script)
		c.Trace = true
		r = x.run(c)
		x.leaks(&r)
		return r
	}
	second := again()
	x.tellFound(f, &second)
	if !f.outside && second.kind == f.kind && second.Hash != f.Hash {
		if third := again(); third.kind == f.kind && third.Hash == second.Hash {
			f.Hash, f.Steps, f.decided = third.Hash, third.Steps, third.allDecisions()
			f.script = replay.Script(f.decided)
		}
	}
	f.repeats = second.kind == f.kind
	f.stable = f.repeats && second.Hash == f.Hash
}

// coirShrinkOutside limits the real time to shrink a failure if something came from outside, because each schedule that
// deadlocks leaves connections behind.
const coirShrinkOutside = 3 * time.Second

// mostSlow returns the longest time to shrink a failure on a slow machine: a fifth of that for others. For a note,
// which stands beside a test that passes, it is also the longest time for all that is done about it, and at most the
// budget.
func (x *coirExplorer) mostSlow() time.Duration {
	if x.asNote {
		return min(coirSet.shrink/5, coirSet.budget)
	}
	return coirSet.shrink / 5
}

// coirClock returns a function that returns the time since then: processor time if the time to shrink is that.
func coirClock() (spent func() time.Duration) {
	began, used := time.Now(), coirUsed()
	return func() time.Duration {
		if coirSet.processor {
			return coirUsed() - used
		}
		return time.Since(began)
	}
}

// shrink searches for a shorter script that fails in the same way. If its time ends first, it adds that to rec.
func (x *coirExplorer) shrink(rec *coirRecord, f *coirFailure) {
	if coirSet.shrink <= 0 {
		rec.add("unshrunk")
		return
	}
	defer x.during(coirShrinks)()
	most := coirSet.shrink
	if x.slow {
		most = x.mostSlow()
	}
	began, spent, stopped, told := time.Now(), coirClock(), false, false
	shown, first := began, replay.Switches(f.script)
	fewest := first
	over := func() bool {
		switch {
		case stopped:
		case f.outside && time.Since(began) > coirShrinkOutside:
			stopped = true // without a word, because more time would not help
		case spent() > most:
			stopped, told = true, true
		}
		return stopped
	}
	x.withoutFaults(f)
	var course search.Course
	run := func() replay.Run {
		if over() {
			return replay.Run{Steps: coirCutSteps + 4*coirSearchSteps}
		}
		if coirSet.record != "" && time.Since(shown) > coirTell {
			shown = time.Now()
			coirTellShrunk(fewest)
		}
		c := f.config.by(nil)
		c.strategy = &course
		q := x.run(c)
		x.leaks(&q)
		fails := q.kind == f.kind && !(x.needsTooSlow(&q) && f.Early <= coir.MostSlow)
		p := replay.Run{Fails: fails, Decisions: q.allDecisions(), Steps: int(q.Steps)}
		if !p.Fails {
			return p
		}
		fewest = min(fewest, replay.Switches(replay.Script(p.Decisions)))
		if turns, values, ok := course.Ran(); ok {
			p.Course = &replay.Course{Turns: turns, Values: values}
		}
		return p
	}
	failed := replay.Run{Fails: true, Decisions: f.decided, Steps: int(f.Steps)}
	f.script, _ = replay.Shrink(failed, func(script []int) replay.Run {
		course.Script(script)
		return run()
	}, func(c *replay.Course) replay.Run {
		course.Follow(c.Turns, c.Values)
		return run()
	}, coirCutSteps, coirSearchSteps)
	if told {
		rec.add("stopped", int64(most), coirSet.processor, int64(6*coirSet.shrink), first)
	}
}

// coirTell is the time between two reports on how far shrinking has come.
const coirTell = 500 * time.Millisecond

// coirTellShrunk tells the command to how many switches a failure has been shrunk so far.
func coirTellShrunk(switches int) {
	os.WriteFile(coirSet.record+".shrunk", []byte(strconv.Itoa(switches)+"\n"), 0o666)
}

// tellFound tells the command what has failed, before it is shrunk. r is the last schedule, with a trace. Nothing is
// said about a failure that may be only a note, or that is not shrunk.
func (x *coirExplorer) tellFound(f *coirFailure, r *coirRun) {
	if x.asNote || r.kind != f.kind || f.config.saved || coirSet.shrink <= 0 || coirSet.record == "" ||
		replay.Switches(f.script) == 0 {
		return
	}
	rec := new(coirRecord)
	rec.failure(r, r.kind, f.found, true)
	if name := coirSet.record + ".found"; os.WriteFile(name+".new", []byte(rec.b.String()), 0o666) == nil {
		os.Rename(name+".new", name)
	}
}

// withoutFaults removes all faults from a failure if it fails in the same way without them. Without a fault there is no
// decision about it either, so the other decisions keep their meaning only if those about faults are removed, too. The
// shrinker then tries to remove the faults one by one.
func (x *coirExplorer) withoutFaults(f *coirFailure) {
	if f.config.Faults == 0 {
		return
	}
	r := x.run(f.config.by(f.script))
	var script []int
	for i, d := range r.allDecisions() {
		if coirDecisionAt(i).Kind != coir.Fault {
			script = append(script, d.Way)
		}
	}
	c := f.config.by(script)
	c.Faults = 0
	r = x.run(c)
	if x.leaks(&r); r.kind != f.kind {
		return
	}
	f.config.Faults, f.Steps, f.decided = 0, r.Steps, r.allDecisions()
	f.script = replay.Script(f.decided)
}

// idleFaults records the faults of a failing schedule that are not needed for the failure: if they happen without an
// effect, the schedule fails in the same way. It does nothing if failures are not shrunk. c is the configuration of the
// schedule, which fails with kind.
func (x *coirExplorer) idleFaults(rec *coirRecord, c coirConfig, kind coir.Kind) {
	if _, ok := c.strategy.(*search.Script); !ok || c.Faults == 0 || coirSet.shrink <= 0 {
		return
	}
	r := x.run(c.again())
	faults := 0
	for i := range r.Decisions {
		if d := coirDecisionAt(i); d.Kind == coir.Fault && d.Way != 0 {
			faults++
		}
	}
	muted := uint32(0) // each of two faults alone may be enough, so they are tried together
	for k := range faults {
		d := c.again()
		d.Muted = muted | 1<<k
		r := x.run(d)
		if x.leaks(&r); r.kind == kind {
			muted = d.Muted
			rec.add("idle", k)
		}
	}
}

// smallest returns the configuration of the schedule to report.
func (f *coirFailure) smallest() coirConfig {
	if !f.repeats && f.LostDecision && search.Again(f.config.strategy) {
		f.stable = true // not all decisions were recorded, but the strategy can make them again
		return f.config
	}
	return f.config.by(f.script)
}

// recordShown runs the schedule to report, with a trace, and records it.
func (x *coirExplorer) recordShown(f *coirFailure, rec *coirRecord, c coirConfig) bool {
	c.Trace = true
	last := x.runShown(c)
	x.leaks(&last)
	if last.kind != f.kind {
		f.stable = false
	}
	if kept := x.kept.Load(); kept != nil && last.kind != f.kind { // record the schedule that failed first
		os.Stdout.WriteString("\x16coir begin\n\x16coir end\n")
		kept.write()
		x.t.Fail()
		return true
	}
	if x.slow && !f.stable {
		return false
	}
	x.recordFailure(rec, &last, f.kind, f.found, f.stable)
	if !x.asNote {
		x.t.Fail()
	}
	return true
}
