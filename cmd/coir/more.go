package main

import (
	"cmp"
	"context"
	"hash/fnv"
	"io"
	"strconv"
	"time"

	"github.com/coir-go/coir/cmd/coir/internal/coir"
)

// A schedule that is not controlled ends its process, because the goroutines that it leaves behind could disturb the
// next schedule. Another process continues with the remaining schedules.

// patience is the number of checks, one each coir.WatchTick, that must find a schedule waiting for something outside
// before the process gives up the schedule. For later such schedules of the same test, half as many are enough.
const patience = 100

// coir test stops exploring a test after fewUncontrolled schedules that were not controlled, if waiting for such
// schedules has taken half of the budget or mostWaited.
const fewUncontrolled, mostWaited = 3, 30 * time.Second

// inTurn explores a test in one process, or in several if schedules are not controlled.
func (x *runner) inTurn(ctx context.Context) *result {
	j := x.job
	proc := j.process()
	var sofar *result
	for {
		r := x.run(ctx, proc)
		if r.outcome == coir.VerdictUncontrolled && r.next < 0 {
			r.schedules = 1 // the plain one; the process runs it a few times first
		}
		r.mergeProcesses(sofar)
		sofar = r
		proc = j.after(sofar)
		sofar.timeUp = sofar.timeUp || proc.budget <= 0
		switch {
		case !j.goesOn(sofar) || proc.exhausted() || ctx.Err() != nil || j.replays():
			return sofar.settled()
		case j.inOrder():
			sofar.stopped = true
			return sofar.settled()
		case sofar.next < 0:
			sofar.outcome = coir.VerdictStateful
			return sofar
		}
	}
}

// mergeProcesses adds the results of the earlier processes of the job. before may be nil. Package testing of the
// overlay counts anew in each process.
func (r *result) mergeProcesses(before *result) {
	if r.outcome == coir.VerdictUncontrolled {
		waiting := r.record
		waiting.twin, waiting.failure = nil, nil
		r.uncontrolled, r.waiting = 1, &waiting
	}
	if before == nil {
		return
	}
	r.mergeRounds(before)
	r.decided = r.decided || before.decided
	r.noSlow = r.noSlow || before.noSlow
	r.used += before.used
	r.trace = traceOf(before.trace, r.trace)
}

// mergeRounds adds the results of earlier rounds of a test: their schedules, their time, and what they found. Each
// round has a budget and a trace of its own, and these are not added.
func (r *result) mergeRounds(before *result) {
	r.tally.add(before.tally)
	r.elapsed += before.elapsed
	r.slow, r.waiting = cmp.Or(r.slow, before.slow), cmp.Or(r.waiting, before.waiting)
	if r.failure != nil {
		r.failure.schedule += before.schedules + before.racing
	}
	if r.recoveries != nil {
		r.recoveries.schedule += before.schedules + before.racing
	}
	r.recoveries = cmp.Or(before.recoveries, r.recoveries)
}

// mergeHalves adds the result of the schedules without faults to that of the schedules with faults.
func (r *result) mergeHalves(without *result) {
	for _, of := range []*record{&r.record, r.slow} {
		if of != nil {
			of.withoutFaults = without.schedules
		}
	}
	r.mergeRounds(without)
	if r.failure != nil {
		r.failure.schedule -= without.racing
	}
	r.once = cmp.Or(r.once, without.once)
	r.noSlow = r.noSlow || without.noSlow
	r.decided, r.timeUp = r.decided || without.decided, r.timeUp || without.timeUp
	if r.complete = r.complete && without.complete; r.all > 0 && without.all > 0 {
		r.all += without.all
	} else {
		r.all = 0
	}
	r.trace = traceOf(without.trace, r.trace)
}

// traceOf returns the hash of what the schedules of two processes did, one after the other.
func traceOf(first, second string) string {
	h := fnv.New64a()
	_, _ = io.WriteString(h, first+second)
	return strconv.FormatUint(h.Sum64(), 16)
}

// patience returns the patience of the next process.
func (r *result) patience() int {
	if r != nil && r.uncontrolled > 0 {
		return patience / 2
	}
	return patience
}

// from returns the number of the next schedule to run, if each schedule needs a process of its own.
func (r *result) from() int {
	if r == nil {
		return 0
	}
	return max(r.next, 1) // the first, the plain one, was not controlled
}

// waited returns the time spent waiting for the schedules that were not controlled.
func (r *result) waited() time.Duration {
	if r == nil || r.uncontrolled == 0 {
		return 0
	}
	return time.Duration(r.uncontrolled+1) * patience / 2 * coir.WatchTick
}

// settled returns the result with its final outcome: a test with some controlled schedules passes if none of
// them failed, and is skipped if all schedules were skipped.
func (r *result) settled() *result {
	if r.outcome == coir.VerdictMore || r.outcome == coir.VerdictUncontrolled && r.schedules+r.racing > r.uncontrolled {
		r.outcome = coir.VerdictPass
	}
	if r.outcome == coir.VerdictPass && r.skips > 0 && r.skips == r.schedules {
		r.outcome = coir.VerdictSkip
	}
	return r
}
