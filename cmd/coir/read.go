package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/coir-go/coir/cmd/coir/internal/coir"
	"github.com/coir-go/coir/internal/report"
)

// reader reads the record of a process, which package testing of the overlay has written: see coir_record.go there.
type reader struct {
	r      *result
	of     *record // the schedule that the present lines describe: that of r, or its twin
	stacks map[int][]place
	fields
}

// read reads what a process has written.
func (r *result) read(text string) {
	r.actors, r.made = map[int]*actor{}, map[int]channel{}
	d := &reader{r: r, of: &r.record, stacks: map[int][]place{0: nil}}
	n := 0
	for line := range strings.Lines(text) {
		n++
		d.fields = fieldsOf(line)
		d.line(d.text())
		if d.end(); d.bad != nil && r.broken == "" {
			r.broken = fmt.Sprintf("line %d of the record is bad: %v: %q", n, d.bad, line)
		}
	}
	if d.of != &r.record && r.broken == "" {
		r.broken = "the twin in the record has no end"
	}
	if r.outcome == coir.VerdictFail && r.failure == nil && r.broken == "" {
		r.broken = "the record has no failure"
	}
	if r.broken != "" && r.outcome != "" && r.outcome != coir.VerdictError { // the report would be wrong
		r.outcome = coir.VerdictError
		r.broken = "internal error in coir test: " + r.broken +
			"; report it with the output below and the output of `go version`"
	}
	r.settle()
	r.name()
}

// line reads the fields of a line after the first word, which says what they are.
func (d *reader) line(what string) {
	r := d.r
	switch what {
	case "summary":
		r.outcome = coir.Verdict(d.quoted())
		r.schedules, r.left, r.all = d.int(), d.int(), d.int()
		r.complete, r.trace = d.bool(), d.quoted()
	case "racing":
		r.racing = d.int()
	case "noslow":
		r.noSlow = true
	case "time":
		r.timeUp, r.decided = d.bool(), d.bool()
	case "outside":
		r.outside = d.int()
	case "skips":
		r.skips = d.int()
	case "beside":
		r.repeated, r.toShrink, r.ofSaved, r.ofToken, r.ofKept = d.int(), d.int(), d.int(), d.int(), d.int()
	case "stopped":
		r.stoppedAt, r.processor, r.goesOn, r.foundWith = d.duration(), d.bool(), d.duration(), d.int()
	case "unshrunk":
		r.unshrunk = true
	case "network":
		r.onKernel = d.quoted()
	case "uncontrolled":
		r.waitsIn, r.next, r.used = d.int(), d.int(), d.duration()
	case "more":
		r.next, r.used = d.int(), d.duration()
	case "steps":
		r.steps, r.busy = d.int(), d.bool()
	case "handlers":
		r.panicked += d.int()
		x := recoveries{schedule: d.int(), token: d.quoted()}
		x.request, x.text, x.at = d.quoted(), d.quoted(), r.panickedAt(d.stack())
		if r.recoveries == nil {
			r.recoveries = &x
		}
	case "again":
		r.token, r.found = d.quoted(), d.int()
	case "part":
		r.part = d.quoted()
	case "never":
		for len(d.in) > 0 {
			r.never = append(r.never, d.quoted())
		}
	case "error":
		r.broken = d.quoted()
	case "idle":
		r.idle = append(r.idle, d.int())
	case "saved":
		r.saved = true
	case "output":
		r.log = d.quoted()
	case "failure":
		r.failure = &failure{
			kind: coir.Kind(d.quoted()), text: d.quoted(), schedule: d.int(), seed: d.uint64(), switches: d.int(),
			token: d.quoted(), stable: d.bool(), outside: d.int(), panicked: d.int(),
		}
		r.steps, r.failure.now = d.int(), d.duration()
	case "alone":
		r.twin = &twin{decisions: d.int(), tried: d.int(), sure: d.bool()}
	case "twin": // the lines up to "end" belong to the twin
		r.twin = &twin{step: d.int(), kind: d.int(), tried: d.int(), sure: d.bool()}
		r.twin.record = &record{
			tested: r.tested, failure: &failure{}, steps: d.int(), actors: map[int]*actor{}, made: map[int]channel{},
		}
		d.of = r.twin.record
	case "end":
		d.of.settle()
		d.of = &r.record
	default:
		d.part(what)
	}
}

// part reads a line that describes a part of a schedule.
func (d *reader) part(what string) {
	of := d.of
	switch what {
	case "at":
		n := d.int()
		d.stacks[n] = []place{}
		for len(d.in) > 0 {
			d.stacks[n] = append(d.stacks[n], d.place())
		}
	case "step":
		of.known = append(of.known, d.step())
	case "case":
		s := d.stepNumbered()
		s.cases = append(s.cases, selectCase{object: d.int(), n: d.int(), send: d.bool()})
	case "note":
		s := d.stepNumbered()
		s.note, s.inner = d.quoted(), ""
	case "recovered":
		of.recovered = &recovered{g: d.int(), request: d.quoted(), text: d.quoted()}
		of.recovered.at = of.panickedAt(d.stack())
	case "channel":
		id, c := d.int(), channel{timer: d.bool(), room: d.int()}
		c.place, c.via = of.own(d.stack())
		of.made[id] = c
	case "actor":
		a := d.actor()
		of.actors[a.id] = a
	default:
		d.is(false, what, "the first word of a line")
	}
}

// stepNumbered reads the number of a step, and returns that step. The record has only the newest coir.KeptSteps steps.
// For an older one, stepNumbered returns a step that belongs to no schedule.
func (d *reader) stepNumbered() *step {
	if i := d.int() - d.of.firstStep(); i >= 0 && i < len(d.of.known) {
		return &d.of.known[i]
	}
	return new(step)
}

func (d *reader) step() step {
	s := step{n: d.int(), g: d.int(), op: d.op(), object: d.int(), at: d.duration()}
	frames := d.stack()
	s.place, s.via = d.of.own(frames)
	s.serviced = d.of.serviced(frames)
	if s.op == coir.OpFail {
		s.stack = frames
	}
	if s.inner = within(s.op, frames); s.inner == "" && s.serviced && !coir.OnNetwork(s.op) && s.op != coir.OpFail {
		s.inner = plumbing
	}
	s.switches, s.kind, s.done, s.chose = d.int(), d.int(), d.int(), d.int()
	s.bytes, s.second, s.on = d.int(), d.bool(), d.int()
	return s
}

func (d *reader) actor() *actor {
	a := &actor{
		id: d.int(), parent: d.int(), op: d.op(), state: d.int(), wait: d.int(), reason: d.quoted(),
		object: d.int(), step: d.int(), since: d.duration(),
	}
	a.made, a.madeBy = d.of.own(d.stack())
	frames := d.stack()
	a.at, a.via = d.of.own(frames)
	a.serviced = len(frames) == 0 || d.of.serviced(frames)
	a.call = kernelCall(frames)
	a.fiber, a.fiberID, a.waits, a.holders, a.role = d.quoted(), d.uint64(), d.quoted(), d.uint64s(), d.quoted()
	a.birth = d.stack()
	return a
}

// stack reads the number of a stack, and returns that stack.
func (d *reader) stack() []place {
	text := d.text()
	n, err := strconv.Atoi(text)
	stack, ok := d.stacks[n]
	d.is(err == nil && ok, text, "the number of a stack")
	return stack
}

// fields reads the fields of a line, and keeps the first error. After an error, its values mean nothing.
type fields struct {
	in  []string
	n   int // how many fields have been read
	bad error
}

// fieldsOf returns the fields of a line. A line without an end is the last one of a process that was killed.
func fieldsOf(line string) fields {
	text, ended := strings.CutSuffix(line, "\n")
	f := fields{in: strings.Split(text, "\t")}
	if !ended {
		f.bad = errors.New("the line has no end")
	}
	return f
}

// end checks that all fields have been read.
func (f *fields) end() {
	if f.bad == nil && len(f.in) > 0 {
		f.bad = fmt.Errorf("%s too many, from field %d on", report.Count(len(f.in), "field"), f.n+1)
	}
}

func (f *fields) text() string {
	if len(f.in) == 0 {
		if f.bad == nil {
			f.bad = fmt.Errorf("field %d is missing", f.n+1)
		}
		return ""
	}
	s := f.in[0]
	f.in = f.in[1:]
	f.n++
	return s
}

// is stores an error about the field that was read last, if ok is false.
func (f *fields) is(ok bool, text, wanted string) {
	if !ok && f.bad == nil {
		f.bad = fmt.Errorf("field %d is %q, not %s", f.n, text, wanted)
	}
}

func (f *fields) int() int {
	text := f.text()
	n, err := strconv.Atoi(text)
	f.is(err == nil, text, "an int")
	return n
}

func (f *fields) uint64() uint64 {
	text := f.text()
	n, err := strconv.ParseUint(text, 10, 64)
	f.is(err == nil, text, "a uint64")
	return n
}

// duration reads a number of nanoseconds.
func (f *fields) duration() time.Duration {
	text := f.text()
	n, err := strconv.ParseInt(text, 10, 64)
	f.is(err == nil, text, "an int64")
	return time.Duration(n)
}

func (f *fields) bool() bool {
	text := f.text()
	f.is(text == "true" || text == "false", text, "true or false")
	return text == "true"
}

// op reads the code of an operation.
func (f *fields) op() int {
	text := f.text()
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n >= len(coir.Ops) {
		f.is(false, text, "an operation")
		return coir.OpNone // callers index coir.Ops
	}
	return n
}

func (f *fields) uint64s() (all []uint64) {
	list := f.quoted()
	for text := range strings.FieldsSeq(strings.Trim(list, "[]")) {
		n, err := strconv.ParseUint(text, 10, 64)
		f.is(err == nil, list, "a list of uint64s")
		all = append(all, n)
	}
	return all
}

func (f *fields) quoted() string {
	text := f.text()
	s, err := strconv.Unquote(text)
	f.is(err == nil, text, "a quoted text")
	return s
}

func (f *fields) place() place { return place{f.quoted(), f.int(), f.quoted()} }
