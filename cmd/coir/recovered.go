package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coir-go/coir/internal/chart"
	"github.com/coir-go/coir/internal/report"
)

// A server of net/http recovers a panic of a handler. The client then gets an error such as EOF, which does not say
// what happened, and a test that ignores the error passes. So the report of a schedule that fails names the panic, and
// a test that passes has a note.

// recovered is the first panic of a schedule that net/http recovered.
type recovered struct {
	g       int    // the goroutine of the handler
	request string // GET /pay
	text    string
	at      place // the line that panicked; empty: it is in the standard library
}

// recoveries describes the schedules of a test in which handlers panicked.
type recoveries struct {
	recovered
	schedule int    // the number of the first such schedule
	token    string // its token; empty: there is none
}

// panickedAt returns the line that panicked. stack is that of a deferred function, which runs above the functions that
// panicked. If a deferred function panics again, the first panic is the lowest one on the stack.
func (t *tested) panickedAt(stack []place) place {
	for i, p := range slices.Backward(stack) {
		if p.function == "runtime.gopanic" {
			stack = stack[i:]
			break
		}
	}
	at, _ := t.own(stack)
	if t.standard(at) {
		return place{}
	}
	return at
}

// handler returns the name of the goroutine that panicked.
func (r *record) handler() string {
	names, x := r.names(), r.recovered
	if last := r.lastStep(x.g); last != nil {
		if name := names[r.by(x.g, last.n)]; strings.HasPrefix(name, "handler ") {
			return name
		}
	}
	return "handler " + x.request
}

// sayRecovered says in a line that net/http recovered a panic.
func (r *record) sayRecovered(dir string) string {
	x := r.recovered
	if x == nil {
		return ""
	}
	return fmt.Sprintf("%s panics: %s%s; net/http recovered it\n", r.handler(), oneLine(x.text), x.at.said(", at %s", dir))
}

// recoveredNote returns the note about a test that passes although handlers panicked, or "".
func (w *writer) recoveredNote(p *pkg, r *result) string {
	x := r.recoveries
	if x == nil {
		return ""
	}
	text := fmt.Sprintf("a handler panicked in %s of %s, and net/http recovered it: %s%s (first in schedule %s",
		chart.Grouped(r.panicked), report.Count(r.schedules+r.racing, "schedule"), oneLine(x.text),
		x.at.said(", at %s", p.Dir), chart.Grouped(x.schedule))
	if x.token != "" {
		text += "; replay: " + w.command(p, &r.record) + " -replay " + x.token
	}
	return text + ")"
}
