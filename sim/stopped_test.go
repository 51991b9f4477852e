package sim

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/report"
	"github.com/coir-go/coir/snapshot"
)

// TestDeadlocksAreExplained: when a program of the corpus has stopped, two snapshots explain it like the report of the
// schedule. If the report has a cycle, they name the same one: the same fibers, and the same objects. Otherwise they
// say that every fiber waits, and for what, in the same words.
//
// There are two exceptions. A report knows all operations of a schedule, and a snapshot only the last users of a
// channel. If a cycle passes through a channel whose users the snapshot does not show, it explains that every fiber
// waits. And if tickers continue, snapshots show that they do, and explain nothing.
//
// Spec: OB-15 (the wait-for graph names cycles)
// Spec: SM-08 (no fiber able to continue is a deadlock)
func TestDeadlocksAreExplained(t *testing.T) {
	if race.Enabled {
		t.Skip("the fibers of a program take turns in taking the snapshots, which the race detector does not see")
	}
	seeds, sum := uint64(5), map[string]int{}
	if testing.Short() {
		seeds = 1
	}
	for _, b := range corpus {
		if b.kind != KindDeadlock {
			continue
		}
		t.Run(b.name, func(t *testing.T) {
			stops := 0
			for seed := range seeds {
				looks := 0
				look := func(w *world) {
					if looks++; looks > 100 { // the failure is being made smaller, again and again
						return
					}
					how, wrong := compareStop(w)
					if wrong != "" && !t.Failed() {
						t.Errorf("seed %d: %s", seed+1, wrong)
					}
					sum[how]++
					stops++
				}
				with := func(seed uint64) Strategy { return &stopper{Strategy: Default(seed), look: look} }
				Explore(b.make(false), append(slices.Clone(b.opts), WithSeed(seed+1), WithSchedules(10_000), WithStrategy(with))...)
			}
			if stops == 0 {
				t.Error("it never came to a stop")
			}
		})
	}
	for _, how := range slices.Sorted(maps.Keys(sum)) {
		t.Logf("%d %s", sum[how], how)
	}
	if sum[sameCycle] == 0 || sum[allWait] == 0 {
		t.Error("some kind of stop was never seen")
	}
}

// stopper is a strategy that decides like another one, and examines each deadlock.
type stopper struct {
	Strategy
	w    *world
	look func(w *world)
}

// Choose implements Strategy.
func (s *stopper) Choose(p *Fork) int {
	if s.w != p.w {
		s.w = p.w
		s.w.host = &stoppedHost{s.w.host, func() { s.look(s.w) }}
		s.w.idle = func() {} // a fiber that is on its way to sleep sleeps before the look
	}
	return s.Strategy.Choose(p)
}

// stoppedHost is the runtime of a world. It calls look when no fiber can run, and no goroutine can help.
type stoppedHost struct {
	policy.Runtime
	look func()
}

// Outside implements policy.Runtime.
func (h *stoppedHost) Outside(time.Duration) (stack []uintptr) {
	if stack = h.Runtime.Outside(0); stack == nil {
		h.look()
	}
	return stack
}

// The kinds of explanations of a stop.
const (
	sameCycle = "stops with a cycle, which the snapshots name"
	allWait   = "stops without a cycle, and every fiber waits"
	unknown   = "stops with a cycle that snapshots cannot know, and every fiber waits"
	ticks     = "stops that tickers hide"
)

// stop is a deadlock, by its report and by two snapshots.
type stop struct {
	*findings
	later  *snapshot.Snapshot
	told   []snapshot.Explanation
	cycle  [][]uint64 // the cycle of the report: the fibers that each of its lines is about
	reason string     // the report
}

// compareStop compares the report of a deadlock with what two snapshots explain. It returns the kind of explanation,
// and what is wrong with it.
func compareStop(w *world) (how, wrong string) {
	earlier, later := w.rt.Snapshot(snapshot.Options{}), w.rt.Snapshot(snapshot.Options{})
	f := &Failure{Kind: KindDeadlock}
	f.freeze(w)
	f.lookBehindTickers(w.limit)
	s := &stop{findings: newReport(f), later: later, told: snapshot.Explain(earlier, later)}
	s.readCycle()
	texts := "\nthe report says\n" + s.reason + "and the snapshots\n"
	for _, x := range s.told {
		texts += fmt.Sprintf("  %s, certain %v: %s\n", x.Kind, x.Certain, x.Text)
	}
	switch {
	case w.nready > 0: // they tick
		if len(s.told) > 0 {
			wrong = texts
		}
		return ticks, wrong
	case s.cycle == nil:
		how = allWait
	case s.knows():
		if !slices.ContainsFunc(s.told, s.isCycle) {
			wrong = texts
		}
		return sameCycle, wrong
	default:
		how = unknown
	}
	if !slices.ContainsFunc(s.told, s.isAll) {
		wrong = texts
	}
	return how, wrong
}

// readCycle reads the cycle from the words of the report.
func (s *stop) readCycle() {
	var b strings.Builder
	s.waits(&b)
	s.traced().SayCauses(&b)
	s.reason = b.String()
	_, lines, ok := strings.Cut(s.reason, "cycle:\n")
	for line := range strings.Lines(lines) {
		if !ok || !strings.HasPrefix(line, "    ") {
			return
		}
		names, _, _ := strings.Cut(strings.TrimSpace(line), " wait")
		var some []uint64
		for i, label := range s.labels {
			if slices.Contains(strings.Split(names, ", "), label) {
				some = append(some, s.fibers[i].f.ID())
			}
		}
		s.cycle = append(s.cycle, some)
	}
}

// fiberIn returns a fiber of the later snapshot.
func (s *stop) fiberIn(id uint64) *snapshot.Fiber {
	i, _ := slices.BinarySearchFunc(s.later.Fibers, id, func(f snapshot.Fiber, id uint64) int { return int(f.ID) - int(id) })
	return &s.later.Fibers[i]
}

// knows reports whether the snapshot shows, for each fiber of the cycle, that the next one could end its wait.
func (s *stop) knows() bool {
	for k, some := range s.cycle {
		next := s.cycle[(k+1)%len(s.cycle)]
		shown := func(w snapshot.Wait) bool {
			i := slices.IndexFunc(s.later.Objects, func(o snapshot.Object) bool { return o.ID == w.Object })
			switch {
			case w.Kind == snapshot.WaitEnd || w.Kind == snapshot.WaitJoin:
				return true
			case i < 0:
				return false
			}
			o := &s.later.Objects[i]
			users := append([]uint64{o.Sender, o.SenderBefore}, o.Holders...)
			if w.Kind == snapshot.WaitSend {
				users = nil
			}
			return slices.ContainsFunc(next, func(id uint64) bool {
				took := (o.Receiver == id || o.ReceiverBefore == id) && !slices.Contains(s.fiberIn(id).Wait, w)
				return took || slices.Contains(users, id)
			})
		}
		for _, id := range some {
			if !slices.ContainsFunc(s.fiberIn(id).Wait, shown) {
				return false
			}
		}
	}
	return true
}

// isCycle reports whether an explanation names the cycle: one of the fibers of each of its lines, and the objects that
// they wait for.
func (s *stop) isCycle(x snapshot.Explanation) bool {
	if x.Kind != snapshot.ProblemDeadlock || len(x.Fibers) < len(s.cycle) {
		return false
	}
	objects := slices.Clone(x.Objects)
	for _, id := range x.Fibers[:len(s.cycle)] {
		if !slices.ContainsFunc(s.cycle, func(some []uint64) bool { return slices.Contains(some, id) }) {
			return false
		}
		of, found := s.objectsOf(id), false
		objects = slices.DeleteFunc(objects, func(o uint64) bool { return slices.Contains(of, o) })
		for _, o := range x.Objects {
			found = found || slices.Contains(of, o)
		}
		if len(of) > 0 && !found {
			return false
		}
	}
	for _, some := range s.cycle {
		if !slices.ContainsFunc(some, func(id uint64) bool { return slices.Contains(x.Fibers[:len(s.cycle)], id) }) {
			return false
		}
	}
	return len(objects) == 0 // otherwise it names one that no fiber of the cycle waits for
}

// objectsOf returns the objects that a fiber waits for according to the report.
func (s *stop) objectsOf(id uint64) (objects []uint64) {
	for i := range s.fibers {
		c := &s.fibers[i]
		if c.f.ID() != id || !c.waits {
			continue
		}
		cases, _ := s.casesOf(c.cases)
		for _, x := range append(slices.Clone(cases), choice{c.op, c.on}) {
			switch x.op.Kind {
			case policy.Send, policy.Recv, policy.Use:
				objects = append(objects, x.op.Object)
			}
		}
	}
	return objects
}

// isAll reports whether an explanation says that every fiber waits, and the snapshot uses the words of the report for
// what each fiber waits for.
func (s *stop) isAll(x snapshot.Explanation) bool {
	if x.Kind != snapshot.ProblemAllWaiting {
		return false
	}
	var ids []uint64
	for i := range s.findings.told.Waiting {
		w := &s.findings.told.Waiting[i]
		id := s.fibers[w.Actor].f.ID()
		if ids = append(ids, id); !slices.Equal(wishes(w), waits(s.fiberIn(id))) {
			return false
		}
	}
	got := slices.Clone(x.Fibers)
	slices.Sort(ids)
	slices.Sort(got)
	return slices.Equal(ids, got)
}

// ownNumbers matches what a report and a snapshot count differently, the children that a report names, and the restarts
// that a snapshot shows of a supervisor.
var ownNumbers = regexp.MustCompile(`(channel )?#\d+|(to end): .*| \(\w+: (\d+ restarts?|last error: ).*\)`)

// wishes returns what a fiber waits for according to the report.
func wishes(w *report.Wait) (texts []string) {
	for _, x := range w.Wishes {
		texts = append(texts, ownNumbers.ReplaceAllString(x.Text, "$2"))
	}
	slices.Sort(texts)
	return texts
}

// waits returns what a fiber waits for according to a snapshot.
func waits(f *snapshot.Fiber) (texts []string) {
	for _, w := range f.Wait {
		texts = append(texts, ownNumbers.ReplaceAllString(w.Text, ""))
	}
	slices.Sort(texts)
	return texts
}

// TestSnapshotsChangeNoSchedule: the schedules of a program are the same with snapshots and without.
func TestSnapshotsChangeNoSchedule(t *testing.T) {
	if race.Enabled {
		t.Skip("the fibers of a program take turns in taking the snapshots, which the race detector does not see")
	}
	for _, b := range corpus {
		run := func(looks int) (hashes []uint64, pairs int) {
			h, count := &hasher{}, newTally()
			Explore(b.make(true), append(slices.Clone(b.opts), WithSchedules(20), WithStrategy(func(seed uint64) Strategy {
				h.Strategy = &looker{Strategy: Portfolio(Random(seed), PCT(seed, 3)), tally: count, seed: seed, most: looks}
				return h
			}))...)
			return h.hashes, count.Pairs
		}
		without, _ := run(0)
		with, pairs := run(20)
		if !slices.Equal(with, without) || pairs == 0 || len(with) < 10 {
			t.Errorf("%s: with %d pairs of snapshots the schedules are %x, without %x", b.name, pairs, with, without)
		}
	}
}

// hasher is a strategy that decides like another one, and keeps the hashes of the schedules.
type hasher struct {
	Strategy
	w      *world
	hashes []uint64
}

// Begin implements Strategy.
func (h *hasher) Begin(schedule int) bool {
	if h.w != nil {
		h.hashes = append(h.hashes, h.w.hash)
	}
	return h.Strategy.Begin(schedule)
}

// Choose implements Strategy.
func (h *hasher) Choose(p *Fork) int {
	h.w = p.w
	return h.Strategy.Choose(p)
}
