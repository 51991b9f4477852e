package testing

import (
	"internal/coir"
	"internal/replay"
	"internal/search"
)

// coirTwinLimits limits the search for a twin, so that it takes less than a second.
var coirTwinLimits = replay.Limits{Steps: 400_000, Schedules: 600, All: 20_000}

// coirTwinOfLeak limits the schedules tried for a leak in the plain order: most such tests leak in every schedule.
const coirTwinOfLeak = 20

// twin searches for the schedule that passes and has as many first decisions as possible in common with the schedule of
// c, which fails with kind. It records the twin. Data races have no twin, because they do not depend on one decision,
// and the race detector reports them only once.
func (x *coirExplorer) twin(rec *coirRecord, c coirConfig, kind coir.Kind) {
	script, ok := c.strategy.(*search.Script)
	if !ok || kind == coir.KindPass || kind == coir.KindRace || coirSet.only >= 0 {
		return
	}
	defer x.during(coirSeeksTwin)()
	run := func(ways []int, rule int, trace bool) (coirRun, replay.Run) {
		s := &search.Script{Ways: ways, Rest: search.Rule(rule)}
		s.Begin(0)
		d := coirScripted(s, &c)
		d.Trace = trace
		q := x.run(d)
		x.leaks(&q)
		fails := q.kind != coir.KindPass || q.Misfit || q.Overflow || q.Outside > 0
		return q, replay.Run{Fails: fails, Decisions: q.allDecisions(), Steps: int(q.Steps)}
	}
	_, failed := run(script.Ways, 0, false)
	if !failed.Fails {
		return
	}
	limits := coirTwinLimits
	if kind == coir.KindLeak && replay.Switches(script.Ways) == 0 {
		limits.Schedules = coirTwinOfLeak
		limits.All = min(limits.All, coirTwinOfLeak/2*failed.Steps)
	}
	stopped := false
	p := replay.Twin(failed.Decisions, func(ways []int, rule int) replay.Run {
		if stopped = stopped || x.asNote && x.spent() > x.mostSlow(); stopped {
			return replay.Run{Fails: true, Steps: limits.Steps}
		}
		_, r := run(ways, rule, false)
		return r
	}, limits)
	switch {
	case p.Twin == nil && stopped:
		return
	case p.Twin == nil:
		rec.add("alone", len(failed.Decisions), p.Tried, p.Sure)
		return
	}
	q, r := run(p.Twin, 0, true)
	if r.Fails || q.Decisions <= p.At {
		return
	}
	d := coirDecisionAt(p.At)
	rec.add("twin", d.Step, d.Kind, p.Tried, p.Sure, q.Steps)
	rec.schedule(&q, false)
	rec.add("end")
}
