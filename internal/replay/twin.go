package replay

import "slices"

// Pair is a failing schedule and its twin: the schedule found that passes and shares the most first decisions with it.
type Pair struct {
	Twin  []int // decisions of the twin; nil if none was found
	At    int   // the first decision in which the two differ
	Tried int   // the number of schedules tried
	Sure  bool  // no passing schedule has more decisions in common, or no schedule passes at all

	// Spared says that schedules with faults that the failing one does not have were left out, also of Sure.
	Spared bool
}

// Limits limit the search for a twin: how many steps and schedules it may use, and how many of the steps it uses to try
// all schedules, from the end of the failing one backwards.
type Limits struct{ Steps, Schedules, All int }

// Twin searches for the twin of a failing schedule. It runs schedules by calling try, which makes the decisions of
// script and then those of a rule: always way 0 for rule 0; try defines the other rules. try must report a schedule as
// failed unless it passes in every respect.
//
// If a passing schedule begins with some of the failing decisions, it begins with fewer of them too. So if the end is
// too far away to try all schedules in between, a binary search finds the place from which on all schedules fail. No
// rule finds every passing schedule, so another schedule may have more decisions in common than the twin that is then
// found. The result depends only on the schedules.
//
// A fault may make a program pass, for example because it ends early. A twin with that fault would only show that. So
// schedules with faults that the failing one does not have are tried only if no other schedule passes.
func Twin(failed []Decision, try func(script []int, rule int) Run, limits Limits) Pair {
	p := twinOf(failed, try, limits, true)
	if p.Twin != nil || !p.Spared {
		return p
	}
	all := twinOf(failed, try, limits, false)
	if !all.Sure {
		all.Tried += p.Tried
	}
	return all
}

// twinOf searches for a twin: if spares is set, without faults that the failing schedule does not have.
func twinOf(failed []Decision, try func(script []int, rule int) Run, limits Limits, spares bool) Pair {
	t := &twins{run: try, failed: failed, limits: limits, spares: spares}
	t.best.At = -1
	first, done := t.all()
	if !done {
		t.turns()
		t.halve(first)
		t.climb(first)
	}
	if t.best.Twin != nil {
		t.plain()
	}
	t.best.At, t.best.Tried, t.best.Sure = max(t.best.At, 0), t.tried, done
	return t.best
}

type twins struct {
	run    func(script []int, rule int) Run
	failed []Decision
	limits Limits
	spares bool // leaves out schedules with more faults
	best   Pair
	tried  int
	spent  int // steps
}

// rules is the number of rules besides the first.
const rules = 6

// over reports whether a limit has been reached.
func (t *twins) over() bool { return t.spent >= t.limits.Steps || t.tried >= t.limits.Schedules }

// script returns the first n of the failing decisions, and more.
func (t *twins) script(n int, more ...int) []int {
	s := make([]int, n, n+len(more))
	for i := range s {
		s[i] = t.failed[i].Way
	}
	return append(s, more...)
}

// try runs a schedule. It reports whether that is the best twin so far.
func (t *twins) try(script []int, rule int) (r Run, better bool) {
	r = t.run(script, rule)
	t.tried++
	t.spends(&r)
	if r.Fails {
		return r, false
	}
	at := 0
	for at < len(t.failed) && at < len(r.Decisions) && t.failed[at].Way == r.Decisions[at].Way {
		at++
	}
	if t.spares && slices.ContainsFunc(r.Decisions[at:], func(d Decision) bool { return d.Fault && d.Way != 0 }) {
		r.Fails, t.best.Spared = true, true
		return r, false
	}
	if at <= t.best.At || at == len(t.failed) || at == len(r.Decisions) { // the last: the program did not repeat itself
		return r, false
	}
	t.best.At, t.best.Twin = at, ways(r.Decisions)
	return r, true
}

// spends counts the cost of a run: its steps, and its ways if there were very many. A number that the program drew
// costs nothing, but may have had any number of ways, so only the first mostWays count.
func (t *twins) spends(r *Run) {
	ways := 0
	for i := range r.Decisions {
		ways += min(r.Decisions[i].Ways, mostWays)
	}
	t.spent += r.Steps + ways/8 + runCost
}

const mostWays = 1 << 16

func ways(decisions []Decision) []int {
	all := make([]int, len(decisions))
	for i := range all {
		all[i] = decisions[i].Way
	}
	return all
}

// all tries all schedules, beginning with those that differ in the last decision only, until one passes. done reports
// whether it has tried all or has found one; if not, every schedule that has more than first of the failing decisions
// in common fails.
func (t *twins) all() (first int, done bool) {
	for at := len(t.failed) - 1; at >= 0; at-- {
		for way := range t.failed[at].Ways {
			if way == t.failed[at].Way || t.leavesOut(t.failed[at], way) {
				continue
			}
			script := t.script(at, way)
			for script != nil {
				if t.over() || t.spent >= t.limits.All {
					return at, false
				}
				r, better := t.try(script, 0)
				if better {
					return at, true
				}
				script = t.after(r.Decisions, at+1)
			}
		}
	}
	return 0, true
}

// leavesOut reports whether a schedule that takes a way has more faults, and so is left out.
func (t *twins) leavesOut(d Decision, way int) bool {
	out := t.spares && d.Fault && way != 0
	t.best.Spared = t.best.Spared || out
	return out
}

// after returns the script that comes after a run, of those that have its first n decisions; nil if there is none.
func (t *twins) after(run []Decision, n int) []int {
	for at := len(run) - 1; at >= n; at-- {
		if next := run[at].Way + 1; next < run[at].Ways && !t.leavesOut(run[at], next) {
			script := ways(run[:at+1])
			script[at]++
			return script
		}
	}
	return nil
}

// turns tries, from the last to the first, to omit a decision that is not 0 and all after it: a shrunk schedule fails
// because of the last of them.
func (t *twins) turns() {
	for at := len(t.failed) - 1; at >= 0 && !t.over(); at-- {
		if t.failed[at].Way == 0 {
			continue
		}
		if _, better := t.try(t.script(at, 0), 0); better {
			return
		}
	}
}

// halve finds by binary search, below most, how many decisions a schedule that passes can have in common.
func (t *twins) halve(most int) {
	for low, high := max(t.best.At, 0), most; low < high && !t.over(); {
		middle := (low + high + 1) / 2
		if t.passes(middle) {
			low = max(middle, t.best.At)
		} else {
			high = middle - 1
		}
	}
}

// passes looks for a schedule that passes with the first n decisions in common.
func (t *twins) passes(n int) bool {
	for rule := 1; rule <= rules && !t.over(); rule++ {
		if r, _ := t.try(t.script(n), rule); !r.Fails {
			return true
		}
	}
	return false
}

// climb looks for schedules that have a little more in common than the twin so far.
func (t *twins) climb(most int) {
	const far = 32
	for at := t.best.At + 1; at <= min(t.best.At+far, most, len(t.failed)-1) && !t.over(); at++ {
		was := t.best.At
		for way := 0; way < t.failed[at].Ways && !t.over(); way++ {
			if way == t.failed[at].Way || t.leavesOut(t.failed[at], way) {
				continue
			}
			for rule := 0; rule <= 2 && !t.over(); rule++ {
				t.try(t.script(at, way), rule)
			}
		}
		if t.best.At > was {
			at = t.best.At
		}
	}
}

// plain sets the decisions of the twin after the one that matters to 0, as long as it still passes and does not differ
// earlier.
func (t *twins) plain() {
	kept := t.best.At + 1
	for size := len(t.best.Twin) - kept; size > 0; size /= 2 {
		for at := kept; at < len(t.best.Twin) && !t.over(); at += size {
			end := min(at+size, len(t.best.Twin))
			if Switches(t.best.Twin[at:end]) == 0 {
				continue
			}
			script := slices.Clone(t.best.Twin)
			clear(script[at:end])
			r := t.run(script, 0)
			t.spends(&r)
			if got := ways(r.Decisions); !r.Fails && len(got) >= kept && slices.Equal(got[:kept], t.best.Twin[:kept]) &&
				Switches(got) < Switches(t.best.Twin) {
				t.best.Twin = got
			}
		}
	}
}
