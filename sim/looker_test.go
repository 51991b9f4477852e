package sim

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/search"
	"github.com/coir-go/coir/snapshot"
)

// This file is also compiled into package sim for the tests of the examples: see runExamples. So it has no test.

// looker is a strategy that decides like another one, and takes snapshots of the program: at random decisions, and at
// random moments at which no fiber can run. It counts what snapshot.Explain returns for them.
type looker struct {
	Strategy
	*tally
	seed   uint64
	most   int // schedules in which it looks
	draw   *rand.Rand
	every  int // decisions for one look
	w      *world
	before *snapshot.Snapshot // the last of this schedule
	claims []claim            // of this schedule
}

// claim is an explanation of a schedule that has not ended.
type claim struct {
	snapshot.Explanation
	how   form
	steps []int // the operations that its fibers wait in
}

// form is how two snapshots that Explain compares were taken.
type form int

const (
	asTaken    form = iota // a millisecond apart
	oneMoment              // at the same step, and Explain is told that ten minutes have passed
	twoMoments             // at different steps, and Explain is told that ten minutes have passed
	forms
)

// tally counts explanations in the schedules of programs. Its fields are exported for package json.
type tally struct {
	Schedules int
	Pairs     int                             // of snapshots
	Certain   map[snapshot.Problem]int        // explanations told as certain, one of whose waits was cancelled later, by kind
	False     map[snapshot.Problem][forms]int // other explanations, by kind
	Right     map[snapshot.Problem][forms]int // those of them one of whose waits was cancelled later
	Wrong     []string                        // explanations told as certain, none of whose waits was cancelled
	Says      map[snapshot.Problem]string     // the first false one of a kind

	ended func() // called after each schedule, unless it is nil
}

func newTally() *tally {
	return &tally{
		Certain: map[snapshot.Problem]int{}, Says: map[snapshot.Problem]string{},
		False: map[snapshot.Problem][forms]int{}, Right: map[snapshot.Problem][forms]int{},
	}
}

// add adds what others have counted.
func (t *tally) add(o *tally) {
	t.Schedules, t.Pairs, t.Wrong = t.Schedules+o.Schedules, t.Pairs+o.Pairs, append(t.Wrong, o.Wrong...)
	for kind, n := range o.Certain {
		t.Certain[kind] += n
	}
	for _, m := range [][2]map[snapshot.Problem][forms]int{{t.False, o.False}, {t.Right, o.Right}} {
		for kind, more := range m[1] {
			n := m[0][kind]
			for i := range n {
				n[i] += more[i]
			}
			m[0][kind] = n
		}
	}
	for kind, text := range o.Says {
		if t.Says[kind] == "" {
			t.Says[kind] = text
		}
	}
}

// kinds returns the kinds of explanations that were told.
func (t *tally) kinds() []snapshot.Problem {
	all := slices.AppendSeq(slices.AppendSeq(slices.Collect(maps.Keys(t.Certain)), maps.Keys(t.False)), maps.Keys(t.Right))
	slices.Sort(all)
	return slices.Compact(all)
}

// Begin implements Strategy.
func (l *looker) Begin(schedule int) bool {
	l.end()
	l.draw = rand.New(rand.NewPCG(l.seed, uint64(schedule)))
	l.every = 4 << l.draw.IntN(6) // a program may have ten decisions, or a thousand
	return l.Strategy.Begin(schedule)
}

// Choose implements Strategy.
func (l *looker) Choose(p *Fork) int {
	if l.w != p.w {
		l.w = p.w
		l.w.idle = func() { l.perhaps(2) }
	}
	if l.w.ways[0] != search.Value { // a select, which has locked its channels, may ask for one
		l.perhaps(l.every)
	}
	return l.Strategy.Choose(p)
}

// perhaps calls look once in that many times.
func (l *looker) perhaps(every int) {
	if l.w.script == nil && l.Schedules < l.most && l.draw.IntN(every) == 0 {
		l.look()
	}
}

// look takes two snapshots, and compares them with each other and with the last before.
func (l *looker) look() {
	now, again := l.take(), l.take()
	l.explain(oneMoment, now, again)
	if l.before != nil {
		l.explain(twoMoments, l.before, now)
	}
	l.before = again
}

// take takes a snapshot. In it, the fibers of the internal package programs do not count as coir's own.
func (l *looker) take() *snapshot.Snapshot {
	s := l.w.rt.Snapshot(snapshot.Options{})
	for i := range s.Fibers {
		f := &s.Fibers[i]
		f.System = f.System && !strings.Contains(f.Spawned, "/internal/programs/")
	}
	return s
}

// explain records what Explain returns for two snapshots as they were taken, and as if time had passed between them.
func (l *looker) explain(how form, earlier, later *snapshot.Snapshot) {
	l.Pairs++
	l.claim(asTaken, snapshot.Explain(earlier, apart(earlier, later, time.Millisecond)))
	l.claim(how, snapshot.Explain(earlier, apart(earlier, later, 10*time.Minute)))
}

// apart returns the later of two snapshots as if it had begun the given time after the earlier one, and as if all waits
// for objects had begun an hour before. The real time between them does not matter, so that every run counts the same.
func apart(earlier, later *snapshot.Snapshot, gap time.Duration) *snapshot.Snapshot {
	s := *later
	s.Taken = earlier.Taken.Add(earlier.Took + gap)
	s.Objects = slices.Clone(later.Objects)
	for i := range s.Objects {
		if o := &s.Objects[i]; gap > time.Minute && o.Senders+o.Receivers+o.Waiters > 0 {
			o.Oldest = earlier.Taken.Add(-time.Hour)
		}
	}
	return &s
}

func (l *looker) claim(how form, all []snapshot.Explanation) {
	for _, x := range all {
		c := claim{Explanation: x, how: how}
		for i := range l.w.nfibers {
			if f := &l.w.fibers[i]; slices.Contains(x.Fibers, f.f.ID()) {
				c.steps = append(c.steps, f.step)
			}
		}
		l.claims = append(l.claims, c)
	}
}

// end counts the explanations of a schedule that has passed. They are false, unless one of the waits was cancelled
// later: without that it might never have ended.
func (l *looker) end() {
	if l.w == nil || l.Schedules == l.most {
		return
	}
	l.Schedules++
	for _, c := range l.claims {
		cancelled := slices.ContainsFunc(c.steps, l.cancelled)
		count := l.False
		switch {
		case c.Certain && cancelled:
			l.Certain[c.Kind]++
			continue
		case c.Certain:
			l.Wrong = append(l.Wrong, c.Text)
			continue
		case cancelled:
			count = l.Right
		case l.Says[c.Kind] == "":
			l.Says[c.Kind] = c.Text
		}
		n := count[c.Kind]
		n[c.how]++
		count[c.Kind] = n
	}
	l.claims, l.before = l.claims[:0], nil
	if l.ended != nil {
		l.ended()
	}
}

func (l *looker) cancelled(step int) bool {
	how := l.w.traced(step).how
	return how == policy.Cancelled || how == policy.TimedOut
}
