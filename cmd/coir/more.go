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

// patience is the number of checks, one every 20 ms, that must find a schedule waiting for something outside before the
// process gives up the schedule. For later such schedules of the same test, half as many are enough.
const patience = 100

// coir test stops exploring a test after fewUncontrolled schedules that were not controlled, if waiting for such
// schedules has taken half of the budget or mostWaited.
const fewUncontrolled, mostWaited = 3, 30 * time.Second

// runOn explores a test in one process, or in several if schedules are not controlled.
func (t *tool) runOn(ctx context.Context, o *options, p *pkg, binary, name string, i int) *result {
	mine := *o
	var all *result
	for {
		mine.patience = all.patience()
		r := t.runProcess(ctx, &mine, p, binary, name, i, -1)
		o.network, o.onKernel = mine.network, mine.onKernel
		if r.outcome == coir.VerdictUncontrolled && r.next < 0 {
			r.schedules = 1 // the plain one; the process runs it a few times first
		}
		r.add(all)
		all = r
		mine.from = max(r.next, 0)
		mine.schedules = o.schedules - r.schedules - r.racing
		mine.budget = o.budget - r.used
		r.timeUp = r.timeUp || mine.budget <= 0
		if !r.goesOn(o) || mine.schedules <= 0 || mine.budget <= 0 || ctx.Err() != nil || o.replay != "" {
			return r.settled()
		}
		if o.inOrder() {
			r.stopped = true
			return r.settled()
		}
		if r.next < 0 {
			r.outcome = coir.VerdictStateful
			return r
		}
	}
}

// inOrder reports whether the strategy depends on its earlier schedules, so that another process cannot continue it.
func (o *options) inOrder() bool { return o.strategy == "exhaustive" || o.strategy == "dpor" }

// add adds the results of earlier processes. all may be nil.
func (r *result) add(all *result) {
	if r.outcome == coir.VerdictUncontrolled {
		waiting := r.record
		waiting.twin, waiting.failure = nil, nil
		r.uncontrolled, r.waiting = 1, &waiting
	}
	if all == nil {
		return
	}
	r.plus(all)
	r.decided = r.decided || all.decided
	r.used += all.used
	h := fnv.New64a()
	_, _ = io.WriteString(h, all.trace+r.trace)
	r.trace = strconv.FormatUint(h.Sum64(), 16)
}

// plus adds what processes and rounds have in common: the schedules and the time of earlier ones, and what these found.
func (r *result) plus(all *result) {
	r.tally.plus(all.tally)
	r.elapsed += all.elapsed
	r.slow, r.waiting = cmp.Or(r.slow, all.slow), cmp.Or(r.waiting, all.waiting)
	if r.failure != nil {
		r.failure.schedule += all.schedules + all.racing
	}
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
	return time.Duration(r.uncontrolled+1) * patience / 2 * 20 * time.Millisecond
}

// goesOn reports whether another process should run the remaining schedules.
func (r *result) goesOn(o *options) bool {
	if r.outcome == coir.VerdictMore {
		return true
	}
	return r.outcome == coir.VerdictUncontrolled &&
		(r.uncontrolled < fewUncontrolled || r.waited() < min(o.budget/2, mostWaited))
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
