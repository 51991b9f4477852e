package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/coir-go/coir/cmd/coir/internal/coir"
)

// reader reads the record of a process, which package testing of the overlay has written: see coir_record.go there.
type reader struct {
	r      *result
	of     *record // the schedule of the lines that describe one: that of r, or its twin
	stacks map[int][]place
	fields
}

// read reads what a process has written.
func (r *result) read(text string) {
	r.actors, r.made = map[int]*actor{}, map[int]channel{}
	d := &reader{r: r, of: &r.record, stacks: map[int][]place{0: nil}}
	for line := range strings.Lines(text) {
		d.fields = fields{in: strings.Split(strings.TrimSuffix(line, "\n"), "\t")}
		if d.line(d.text()); d.bad != nil {
			r.broken = fmt.Sprintf("the record has a bad line %q: %v", line, d.bad)
		}
	}
	if d.of != &r.record {
		r.broken = "the twin in the record has no end"
	}
	if r.outcome == coir.VerdictFail && r.failure == nil {
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
	case "time":
		r.timeUp, r.decided = d.bool(), d.bool()
	case "outside":
		r.outside = d.int()
	case "skips":
		r.skips = d.int()
	case "network":
		r.onKernel = d.quoted()
	case "uncontrolled":
		r.waitsIn, r.next, r.used = d.int(), d.int(), time.Duration(d.int())
	case "more":
		r.next, r.used = d.int(), time.Duration(d.int())
	case "steps":
		r.steps, r.busy = d.int(), d.bool()
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
	case "output":
		r.log = d.quoted()
	case "failure":
		r.failure = &failure{
			kind: coir.Kind(d.quoted()), text: d.quoted(), schedule: d.int(), seed: uint64(d.int()), switches: d.int(),
			token: d.quoted(), stable: d.bool(), outside: d.int(), panicked: d.int(),
		}
		r.steps, r.failure.now = d.int(), time.Duration(d.int())
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
		n, c := d.int(), selectCase{object: d.int(), n: d.int(), send: d.bool()}
		if i := n - of.firstStep(); i >= 0 && i < len(of.known) {
			of.known[i].cases = append(of.known[i].cases, c)
		}
	case "note":
		if i := d.int() - of.firstStep(); i >= 0 && i < len(of.known) {
			of.known[i].note, of.known[i].inner = d.quoted(), ""
		}
	case "channel":
		id, c := d.int(), channel{timer: d.bool(), room: d.int()}
		c.place, c.via = of.own(d.stack())
		of.made[id] = c
	case "actor":
		a := d.actor()
		of.actors[a.id] = a
	default:
		d.bad = errors.New("unknown first word")
	}
}

func (d *reader) step() step {
	s := step{n: d.int(), g: d.int(), op: d.int(), object: d.int(), at: time.Duration(d.int())}
	frames := d.stack()
	s.place, s.via = d.of.own(frames)
	s.serviced = d.of.serviced(frames)
	if s.inner = within(s.op, frames); s.inner == "" && s.serviced && !coir.OnNetwork(s.op) && s.op != coir.OpFail {
		s.inner = plumbing
	}
	s.switches, s.kind, s.done, s.chose = d.int(), d.int(), d.int(), d.int()
	s.bytes, s.second, s.on = d.int(), d.bool(), d.int()
	return s
}

func (d *reader) actor() *actor {
	a := &actor{
		id: d.int(), parent: d.int(), op: d.int(), state: d.int(), reason: d.quoted(), object: d.int(),
		step: d.int(), since: time.Duration(d.int()),
	}
	a.made, a.madeBy = d.of.own(d.stack())
	frames := d.stack()
	a.at, a.via = d.of.own(frames)
	a.serviced = len(frames) == 0 || d.of.serviced(frames)
	a.call = kernelCall(frames)
	a.fiber, a.fiberID, a.waits, a.holders, a.role = d.quoted(), d.int(), d.quoted(), d.ints(), d.quoted()
	a.birth = d.stack()
	return a
}

// stack reads the number of a stack, and returns that stack.
func (d *reader) stack() []place {
	stack, ok := d.stacks[d.int()]
	if !ok && d.bad == nil {
		d.bad = errors.New("unknown stack")
	}
	return stack
}

// fields reads the fields of a line.
type fields struct {
	in  []string
	bad error
}

func (f *fields) text() string {
	if len(f.in) == 0 {
		f.bad = errors.New("too few fields")
		return ""
	}
	s := f.in[0]
	f.in = f.in[1:]
	return s
}

func (f *fields) int() int {
	n, err := strconv.Atoi(f.text())
	if err != nil && f.bad == nil {
		f.bad = err
	}
	return n
}

func (f *fields) bool() bool { return f.text() == "true" }

func (f *fields) ints() (all []int) {
	for text := range strings.FieldsSeq(strings.Trim(f.quoted(), "[]")) {
		n, err := strconv.Atoi(text)
		if err != nil && f.bad == nil {
			f.bad = err
		}
		all = append(all, n)
	}
	return all
}

func (f *fields) quoted() string {
	s, err := strconv.Unquote(f.text())
	if err != nil && f.bad == nil {
		f.bad = err
	}
	return s
}

func (f *fields) place() place { return place{f.quoted(), f.int(), f.quoted()} }
