package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/coir-go/coir/cmd/coir/internal/coir"
	"github.com/coir-go/coir/internal/chart"
	"github.com/coir-go/coir/internal/report"
)

// This file writes the report of a failure: what happened, which goroutine waits for what, which goroutine could end
// each wait, and the last steps with a column for each goroutine.

// channel returns the name of a channel, and where it was made if that is useful: the channel of a context is made when
// Done is first called. full says that a goroutine waits to send to it.
func (r *record) channel(id int, name, dir string, full bool) string {
	text := r.called(coir.OpRecv, id, name)
	if c, ok := r.made[id]; ok && c.place.file != "" && !strings.HasPrefix(c.via, "context.") {
		text = with(text, c.place.said("made at %s", dir)+c.capacity(full))
	}
	return text
}

// capacity returns the capacity of a channel, and whether it is full, as words to append to its name. Channels of
// timers and channels without a buffer have none.
func (c channel) capacity(full bool) string {
	switch {
	case c.timer || c.room == 0:
		return ""
	case full:
		return fmt.Sprintf(", capacity %d, full", c.room)
	}
	return fmt.Sprintf(", capacity %d", c.room)
}

// kinds describe the sorts of failures.
var kinds = map[coir.Kind]string{
	coir.KindDeadlock: "deadlock",
	coir.KindPanic:    "panic",
	coir.KindFail:     "the test fails",
	coir.KindLivelock: "livelock: it never ends",
	coir.KindLeak:     "a goroutine is left behind",
	coir.KindRace:     "data race",

	coir.KindRecovered: "a handler panics",
}

// headline returns one line that says what happened, in which schedule, and whether that needs faults.
func (r *record) headline() string {
	text, faults := r.withoutFaultsText(), r.neededFaults()
	if faults == "" {
		return text
	}
	if text += ", with " + faults; r.withoutFaults > 0 {
		text += fmt.Sprintf("; %s without faults passed", report.Count(r.withoutFaults, "schedule"))
	}
	return text
}

// neededFaults says in words what sort of faults the failure needs; empty: none.
func (r *record) neededFaults() string {
	ofNet, ofTest := false, false
	n := 0
	for _, s := range r.known {
		if !coir.IsFault(s.op) {
			continue
		}
		if needed := !slices.Contains(r.idle, n); needed && s.op == coir.OpFault {
			ofTest = true
		} else if needed {
			ofNet = true
		}
		n++
	}
	switch {
	case ofNet && ofTest:
		return "faults of the network and of the test"
	case ofNet:
		return "faults of the network"
	case ofTest:
		return "faults of the test"
	}
	return ""
}

// withoutFaultsText returns the headline without the words about faults.
func (r *record) withoutFaultsText() string {
	f := r.failure
	text := kinds[f.kind]
	if f.kind == coir.KindLeak {
		text = leftText(r.leftFrom())
	}
	if f.text != "" {
		text += ": " + oneLine(f.text) + ","
	}
	if raced := r.raced(); raced != "" && f.kind == coir.KindRace {
		text += ": " + raced + ","
	}
	if s := r.failStep(); s != nil && r.message != "" {
		text += ": " + s.place.base() + ": " + r.message + ","
	}
	switch x := r.recovered; {
	case x == nil:
	case f.kind == coir.KindRecovered:
		text = fmt.Sprintf("the test passes, but %s panics (%s),", r.handler(), oneLine(x.text))
	default:
		text = fmt.Sprintf("%s after %s panicked (%s),", strings.TrimSuffix(text, ","), r.handler(), oneLine(x.text))
	}
	if h, _ := readToken(f.token); h.Racing > 0 {
		if f.kind == coir.KindFail {
			text = "on a slow machine: " + text
		} else {
			text += " when a timer fires while others are busy,"
		}
	}
	text += fmt.Sprintf(" in schedule %s (seed %d)", chart.Grouped(f.schedule), f.seed)
	n := switchesText(f.switches)
	switch {
	case f.token == "":
		return text + ", with more than " + n
	case f.switches == 0:
		return text + ", in the plain order"
	case r.saved:
		return text + ", as it was saved, with " + n
	case f.replayed:
		return text + ", with " + n
	case r.notShrunk():
		return text + ", with " + n + ", " + asFound
	}
	return text + ", shrunk to " + n
}

// oneLine returns a text without characters that would break the line or control the terminal.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '.'
		}
		return r
	}, text)
}

// report explains a failure. dir is the directory of the package, and width that of the tables.
func (r *record) report(dir string, width int) string {
	var b strings.Builder
	t := r.traced(dir)
	t.Width = width
	if b.WriteString(r.explain(dir)); r.notShrunk() && r.failure.switches > mostUnshrunk {
		b.WriteString(r.withoutSteps())
		return b.String()
	}
	b.WriteString(r.sayDivergence(dir, width))
	t.Table(&b)
	return b.String()
}

// explain describes which goroutine waits for what.
func (r *record) explain(dir string) string {
	var b strings.Builder
	f, names := r.failure, r.names()
	switch {
	case f.outside > 0:
		fmt.Fprintf(&b, "%s came from outside (network, system calls, goroutines of other tests): a replay may differ\n",
			report.Count(f.outside, "wake"))
	case !f.stable:
		b.WriteString("a second run with the same decisions ended differently: the test depends on something that lasts from " +
			"one schedule to the next\n")
	}
	if r.stoppedAt > 0 {
		b.WriteString(r.notFullyShrunk())
	}
	if r.cut() {
		fmt.Fprintf(&b, "the schedule has %s steps; the last %s are known\n", chart.Grouped(r.steps),
			chart.Grouped(len(r.known)))
	}
	if f.token == "" {
		b.WriteString("it made too many decisions to record, so it cannot be replayed from a token\n")
	}
	b.WriteString(r.faults(names, dir))
	r.explainFailure(&b, dir)
	r.ending(dir).SayCauses(&b)
	return b.String()
}

// asFound says that a schedule was not shrunk.
const asFound = "not shrunk"

// notShrunk reports whether the schedule has as many switches as when it was found, because the user asked for that, or
// shrinking was stopped too early.
func (r *record) notShrunk() bool {
	f := r.failure
	return !f.replayed && f.switches > 0 && (r.unshrunk || r.stoppedAt > 0 && f.switches >= r.foundWith)
}

// mostUnshrunk is the number of switches up to which the report of a schedule that was not shrunk has a table: one
// with more would be hard to follow.
const mostUnshrunk = 10

// withoutSteps says that the report leaves the steps out, and how to see them.
func (r *record) withoutSteps() string {
	shorter := "a run without -shrink 0"
	if !r.unshrunk {
		shorter = "-shrink " + shortTime(r.goesOn)
	}
	return fmt.Sprintf("%s with %s are hard to follow, so they are left out: %s reports fewer; a replay and -html show "+
		"these\n", report.Count(r.steps, "step"), switchesText(r.failure.switches), shorter)
}

// notFullyShrunk says that shrinking was stopped, and how to continue.
func (r *record) notFullyShrunk() string {
	of := ""
	if r.processor {
		of = " of processor time"
	}
	how := "not fully shrunk"
	if r.notShrunk() {
		how = asFound
	}
	return fmt.Sprintf("%s: stopped after %s%s; to continue, use -shrink %s\n", how, shortTime(r.stoppedAt), of,
		shortTime(r.goesOn))
}

// shortTime returns a time as a flag has it, such as 1m instead of 1m0s.
func shortTime(d time.Duration) string {
	text := d.String()
	for _, end := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, end) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// explainFailure describes the operation that failed, and which goroutine waits for what.
func (r *record) explainFailure(b *strings.Builder, dir string) {
	f, names := r.failure, r.names()
	b.WriteString(r.sayRecovered(dir))
	if a := r.actors[f.panicked]; f.kind == coir.KindPanic && a != nil {
		fmt.Fprintf(b, "%s panics%s\n", names[a.id], a.at.said(", at %s", dir)) // go wg.Done() has no place
	}
	if s := r.failStep(); s != nil && s.place.file != "" {
		fmt.Fprintf(b, "%s calls %s%s%s\n", names[r.by(s.g, s.n)], r.words(*s), s.place.said(", at %s", dir),
			r.helper.said(" (in "+function(r.helper.function)+", at %s)", dir))
	}
	r.waiters(b, dir)
}

// faults lists the faults of the schedule: first those that matter for the failure, and then the others.
func (r *record) faults(names map[int]string, dir string) string {
	var matter, idle strings.Builder
	n := 0
	for _, s := range r.known {
		if !coir.IsFault(s.op) {
			continue
		}
		text := fmt.Sprintf("%s, in %s%s, at step %s", r.words(s), names[r.by(s.g, s.n)], s.place.said(", at %s", dir),
			chart.Grouped(s.n))
		if slices.Contains(r.idle, n) {
			idle.WriteString(text + ", is not needed for the failure: the test fails in the same way without its effect\n")
		} else {
			matter.WriteString(text + "\n")
		}
		n++
	}
	if h, _ := readToken(r.failure.token); matter.Len() > 0 && (!r.failure.stable || h.Alone) {
		matter.WriteString("the schedule could not be made smaller, so some of these faults may not be needed for the failure\n")
	}
	return matter.String() + idle.String()
}

// waiters describes what goroutines wait for. Those that wait for the same thing at the same line are grouped.
func (r *record) waiters(b *strings.Builder, dir string) {
	r.ending(dir).SayWaits(b, func(same []report.Wait) (text string) {
		if len(same) > 1 {
			text = fmt.Sprintf(" (%s)", report.Count(len(same), "goroutine"))
		}
		return text + r.waitedFor(same)
	})
	n := 0
	for id, a := range r.actors {
		if r.helps(id) && a.state == coir.Waiting {
			n++
		}
	}
	if f := r.failure; n > 0 && f.kind != coir.KindFail && f.kind != coir.KindPanic {
		fmt.Fprintf(b, "... and %s of net/http\n", report.Count(n, "goroutine"))
	}
}

// cut reports whether the beginning of the trace is missing.
func (r *record) cut() bool { return r.steps > len(r.known) }

// ids returns the numbers of goroutines, in order. The earlier requests of a connection come before its goroutine.
func (r *record) ids() []int {
	ids := make([]int, 0, len(r.actors))
	for id := range r.actors {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b int) int {
		x, y := r.actors[a], r.actors[b]
		switch {
		case x.goroutine() != y.goroutine():
			return x.goroutine() - y.goroutine()
		case x.of == 0:
			return 1
		case y.of == 0:
			return -1
		}
		return a - b
	})
	return ids
}

// names returns the names of goroutines. If a function called at the origin of a goroutine started it, the name begins
// with that function: http.Get at client_test.go:31 (transport.go:1994).
func (r *record) names() map[int]string {
	names := r.shortNames()
	for id, a := range r.actors {
		if o := r.origin(a); r.kindOfName(a) == "" && a.role == "" && !o.starts() {
			names[id] = function(o.called) + " at " + names[id]
		}
	}
	return names
}

// shortNames returns the names of goroutines: the name of the test, or the origin, with a number if several goroutines
// of the failure or of its twin have the same name.
func (r *record) shortNames() map[int]string {
	names, n := map[int]string{0: "clock"}, r.name()
	for id, a := range r.actors {
		names[id] = n.goroutines[a]
	}
	return names
}

// starters returns the step that started each goroutine: the n-th go statement of a goroutine started its n-th child.
func (r *record) starters() map[int]*step {
	children := map[int][]int{}
	for _, id := range r.ids() {
		children[r.actors[id].parent] = append(children[r.actors[id].parent], id)
	}
	by := map[int]*step{}
	if r.firstStep() > 1 {
		return by // the first children are not known
	}
	for i := range r.known {
		s := &r.known[i]
		if all := children[s.g]; s.op == coir.OpGo && len(all) > 0 {
			by[all[0]] = s
			children[s.g] = all[1:]
		}
	}
	return by
}

// traced returns the failure in the form that package report writes.
func (r *record) traced(dir string) *report.Trace {
	t := r.ending(dir)
	if t.Steps != nil {
		return t
	}
	r.draw(t, dir)
	t.Total, t.FailedAt, t.Exact, t.Twin = r.endStep(), r.failedAt(), exact, r.passing(dir)
	t.Stuck = r.failure.kind == coir.KindDeadlock || r.failure.kind == coir.KindLeak
	columns := r.columns()
	if s := r.failStep(); s != nil {
		t.Failing = append(t.Failing, columns[r.by(s.g, s.n)])
	}
	if i, ok := columns[r.failure.panicked]; ok && r.failure.kind == coir.KindPanic {
		t.Failing = append(t.Failing, i)
	}
	if x := r.recovered; x != nil {
		if last := r.lastStep(x.g); last != nil {
			if i, ok := columns[r.by(x.g, last.n)]; ok {
				t.Failing = append(t.Failing, i)
			}
		}
	}
	t.Failing = append(append(t.Failing, t.FindCycle()...), t.Holders()...)
	for _, s := range slices.Backward(t.Steps) {
		if s.Switches > 0 {
			t.Decided = append(t.Decided, s.Actor)
		}
	}
	return t
}

// blockedIn reports whether the goroutine of a step waits in that step at the end, and not in an operation without a
// step, such as a select without cases.
func (r *record) blockedIn(s *step) bool {
	switch s.op {
	case coir.OpSend, coir.OpRecv, coir.OpSelect, coir.OpLock, coir.OpRLock, coir.OpWLock, coir.OpWait, coir.OpCondWait,
		coir.OpOnce:
	default:
		if !coirs(s.via) {
			return false
		}
	}
	a := r.actors[s.g]
	return !r.happened(s) && s.g != r.failure.panicked && a.at.file == s.place.file && a.at.line == s.place.line
}

// stuck reports whether a goroutine waits at the end, or has panicked.
func (r *record) stuck(g int) bool {
	a := r.actors[g]
	return a != nil && (a.state == coir.Waiting || r.failure != nil && a.id == r.failure.panicked)
}

// failStep returns the first step that failed the test, or nil.
func (r *record) failStep() *step {
	i := slices.IndexFunc(r.known, func(s step) bool { return s.op == coir.OpFail })
	if i >= 0 && r.failure.kind == coir.KindFail {
		return &r.known[i]
	}
	return nil
}

// endStep returns the number of the step that completes the failure: the step that failed the test, the last step of
// the goroutine that panicked, or otherwise the last step.
func (r *record) endStep() int {
	if s := r.failStep(); s != nil {
		return s.n
	}
	if last := r.lastStep(r.failure.panicked); last != nil {
		return last.n
	}
	return r.steps
}

// words describes a step in a few words: the operation, its object, and the package of the standard library.
func (r *record) words(s step) string {
	text := coir.Ops[s.op].Name
	switch {
	case s.note != "":
		return s.note
	case s.op == coir.OpFault:
		return text
	case s.closes != 0:
		return "cancel the context of " + r.object(coir.OpClose, s.closes)
	case s.calls():
		return s.call()
	case coirs(s.via):
		return method(s.via)
	case s.op == coir.OpFail:
		return "t" + s.via[strings.LastIndex(s.via, "."):]
	case s.chose < 0:
		return "select default"
	case s.op == coir.OpSelect && s.chose > 0:
		for _, c := range s.cases {
			if c.n == s.chose-1 && c.send {
				return "select send " + r.called(coir.OpSend, c.object, c.name)
			} else if c.n == s.chose-1 {
				return "select recv " + r.called(coir.OpRecv, c.object, c.name)
			}
		}
	case s.last && s.op == coir.OpSelect && r.asks(&s):
		return "waits for the answer"
	case s.op == coir.OpSelect && len(s.cases) > 0:
		return "select " + r.choices(s.cases)
	case s.chose > 0:
		text = "select " + text
	}
	if o := r.called(s.op, s.object, s.name); o != "" {
		text += " " + o
		if s.op == coir.OpOnce {
			text = "do " + o
		}
	}
	if s.bytes > 0 {
		text += ", " + report.Count(s.bytes, "byte")
	}
	if s.waited {
		text += ": waits"
	}
	if name := library(s.via); s.via == whilePanicking {
		text += " while it panics"
	} else if name != "" && !r.moves(s) {
		text += " in " + name
	}
	return text
}

// moves reports whether a service library reads from a connection, or writes to it, in a step.
func (r *record) moves(s step) bool {
	return (s.op == coir.OpNetRead || s.op == coir.OpNetWrite) && r.service(s.via)
}

// choices returns the cases of a select in a few words.
func (r *record) choices(cases []selectCase) string {
	const most = 4
	var texts []string
	for _, c := range cases[:min(len(cases), most)] {
		op := coir.OpRecv
		if c.send {
			op = coir.OpSend
		}
		texts = append(texts, coir.Ops[op].Name+" "+r.called(op, c.object, c.name))
	}
	if len(cases) > most {
		texts = append(texts, "...")
	}
	return strings.Join(texts, ", ")
}

// leftBehind describes the goroutines that a schedule of a test that passes has left behind.
func (r *record) leftBehind(dir string) string {
	var b, lines strings.Builder
	r.waiters(&lines, dir)
	for line := range strings.Lines(lines.String()) {
		b.WriteString("left behind: " + line)
	}
	for _, id := range r.ids() {
		if a := r.actors[id]; lines.Len() == 0 && id != 1 && a.state != coir.Ended {
			fmt.Fprintf(&b, "left behind: %s%s\n", r.names()[id], r.origin(a).at.said(", started at %s", dir))
		}
	}
	return b.String()
}

// short returns a file's name, relative to the package's directory if it is in there.
func short(file, dir string) string {
	if rel, err := filepath.Rel(dir, file); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return filepath.Join(filepath.Base(filepath.Dir(file)), filepath.Base(file))
}
