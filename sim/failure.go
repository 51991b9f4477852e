package sim

import (
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/policy"
)

// A failure keeps its schedule as it was at that moment, because after it the program is only torn down. It keeps the
// schedule in raw form, because this happens inside the schedule; report.go and chart.go make it readable.

// Kind is how a schedule has failed.
type Kind string

// The kinds of failures.
const (
	KindPanic        Kind = "panic"
	KindError        Kind = "error"
	KindDeadlock     Kind = "deadlock"
	KindLivelock     Kind = "livelock"
	KindUncontrolled Kind = "uncontrolled"
	KindDiverged     Kind = "diverged"
)

// Failure is a schedule that has failed.
type Failure struct {
	Kind     Kind
	Text     string
	Schedule int // number of the schedule, from 1; 0 if it was replayed
	Strategy string
	Seed     uint64
	Token    string // replays the schedule
	Steps    int
	Switches int // decisions that were not 0

	test     string // the test that found it, or empty
	options  string // the options that a replay needs, in the form of further arguments of Replay
	script   []int
	ways     []int    // the number of ways of each decision of script
	branches []branch // those decisions, if they were recorded
	twin     *twin    // nil if sim has not searched for one
	fibers   []column
	before   int     // the number of operations that were not kept
	trace    []event // the operations after those, with times since the schedule began
	cases    []choice
	sites    []site     // of the trace, if they were recorded
	made     []making   // where channels were made, if recorded
	marks    []mark     // of Errorf, Logf and Sometimes
	draws    []decision // of Intn
	holds    []hold
	ticking  []bool   // the fibers that only wait for time repeatedly, if the other fibers are in a deadlock
	unsure   bool     // the same decisions have led to another behaviour
	cut      bool     // shrinking was ended early
	forked   int      // the step after which the behaviour differs, if that is the failure and is known
	panicked string   // other panics of the program, before the failure or while it was torn down
	errs     []string // the first texts of nerrs calls of Errorf
	nerrs    int
	native   *nativeStop // if it is blocked; nil if unknown
	over     bool        // it was blocked by a wait that has ended
	strays   []string    // the operations of goroutines outside, if it is a deadlock
	hash     uint64
	lengths  uint64 // see recorder
	hashes   []byte // see token.go
}

// Kinds of trace entries that are not operations of coir.
const (
	opFault   policy.Kind = 255 - iota // a fault has fired
	opGoOn                             // a fiber that was stopped after its last operation continues
	opAdvance                          // Sim.Advance
)

// column is a fiber in a report.
type column struct {
	f      *coir.Fiber
	object int32 // the fiber's number among the objects
	ended  bool
	failed error // with which it ended; nil if unknown
	panics bool  // failed is a *coir.PanicError, because it panicked
	waits  bool  // it waits in op, which is operation number step of the trace; step is negative if op was not kept
	op     policy.Op
	on     int32 // the object of op, or -1
	cases  span
	since  time.Duration
	step   int
	site   site // of op, if it was recorded
}

// freeze copies what the report needs of the schedule as it is now. It may run inside of the schedule, so it only
// copies.
//
//go:norace
func (f *Failure) freeze(w *world) {
	f.Steps, f.options = w.nsteps, w.options
	f.before = w.forgotten()
	f.trace = make([]event, w.nsteps-f.before)
	for i := range f.trace {
		f.trace[i] = *w.traced(f.before + i)
	}
	lost := max(0, w.ncases-len(w.cases))
	f.cases = make([]choice, w.ncases-lost)
	for i := range f.cases {
		f.cases[i] = w.cases[(lost+i)&(len(w.cases)-1)]
	}
	for i := range f.trace {
		f.trace[i].cases.cut(lost)
	}
	f.script, f.ways = make([]int, w.ndec), make([]int, w.ndec)
	draws := 0
	for i := range f.script {
		d := w.decisions[i].chosen
		f.script[i], f.ways[i] = d, w.decisions[i].of
		if d != 0 {
			f.Switches++
		}
		if w.decisions[i].drawn > 0 {
			draws++
		}
	}
	f.draws = make([]decision, draws)
	for i, at := 0, 0; at < draws; i++ {
		if w.decisions[i].drawn > 0 {
			f.draws[at] = w.decisions[i]
			at++
		}
	}
	f.tell(w)
	f.holds = w.holds.clone()
	f.hash, f.lengths, f.hashes = w.hash, w.lengths, w.hashes.clone()
	f.fibers = make([]column, w.nfibers)
	for i := range f.fibers {
		x := &w.fibers[i]
		c := &f.fibers[i]
		c.f = x.f
		c.object = w.objectOf(policy.Op{Kind: policy.Wait, Object: x.f.ID()})
		c.ended = x.ended
		c.failed, c.panics = w.host.Failed(x.f)
		// The running fiber does not wait, whatever was last recorded about it. In a deadlock no fiber runs; after the
		// end none is left.
		c.waits = x.waiting && !x.ended && !x.pending && w.running && (f.Kind == KindDeadlock || int32(i) != w.current)
		c.cases = x.cases
		c.cases.cut(lost)
		c.op, c.on, c.since, c.step, c.site = x.op, x.object, x.since, x.step-f.before, x.site
	}
}

// cut adjusts the span after the first lost cases were removed.
//
//go:norace
func (s *span) cut(lost int) {
	if s.first -= lost; s.first < 0 {
		*s = span{n: -1}
	}
}

// casesOf returns the cases of a select, and whether they are known.
func (f *Failure) casesOf(s span) ([]choice, bool) {
	if s.n < 0 {
		return nil, false
	}
	return f.cases[s.first : s.first+int(s.n)], true
}

// Error returns the whole report: what happened, which fiber waits for what, the operations in order, and how to replay
// it.
func (f *Failure) Error() string {
	var b strings.Builder
	r := newReport(f)
	r.head(&b)
	if f.cut {
		b.WriteString("  it was too long to be made as small as it could be: choices may be left that do not matter\n")
	}
	r.explain(&b)
	r.sayDivergence(&b)
	var table strings.Builder
	r.traced().Table(&table)
	b.WriteString(r.legend(b.String() + table.String()))
	b.WriteString(table.String())
	if f.unsure {
		fmt.Fprintf(&b, "  %s\n", unsureText)
	}
	if line := f.replayLine(); line != "" {
		fmt.Fprintf(&b, "  replay: %s\n", line)
	}
	return b.String()
}

const unsureText = "the program is not deterministic: the same decisions have led to something else, and may again. Something decides that is not of coir:\n" +
	"    math/rand, the order of a map, time.Now, Fiber.ID, or what an earlier schedule has left behind; see s.Intn and s.Now"

// replayLine returns the command that replays the failure.
func (f *Failure) replayLine() string {
	switch {
	case f.Token == "" || f.Kind == KindDiverged: // a schedule that has diverged is not the recorded one
		return ""
	case f.test == "":
		return fmt.Sprintf("sim.Replay(%q, program%s)", f.Token, f.options)
	}
	return fmt.Sprintf("go test%s -run '^%s$' -sim.replay=%s", testedPackage(), strings.ReplaceAll(f.test, "/", "$/^"), f.Token)
}

// testedPackage returns a space and the path of the package under test, so that the command works anywhere in the
// module, or "" if the path is not known.
func testedPackage() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		if path, ok := strings.CutSuffix(info.Path, ".test"); ok {
			return " " + path
		}
	}
	return ""
}
