package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coir-go/coir/internal/chart"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/report"
	"github.com/coir-go/coir/internal/search"
)

// This file makes the rows of the table and of the chart: the operations of a failure, in order. Between them are rows
// that are not operations: texts that the program reported, and numbers that were drawn. If a function of the library
// performs several operations for one call of the program, these are one row, which has the name of the function.

// rows returns the rows, and for each operation of the trace its row, or -1.
func (r *findings) rows() (all []chart.Step, rowOf []int) {
	rowOf = make([]int, len(r.trace))
	calls := make([]call, len(r.fibers))
	notes := r.remarks()
	for s := range r.trace {
		for len(notes) > 0 && notes[0].step <= r.before+s {
			all, notes = append(all, notes[0].Step), notes[1:]
		}
		e, at := &r.trace[s], r.siteOf(s)
		text, title, waits := r.acted(s), strings.TrimPrefix(at.at(), ", "), r.waitsIn(s)
		rowOf[s] = -1
		drops := r.drops(s)
		kept := waits || drops || e.op.Kind == policy.Send && e.how == policy.Closed
		if at.file == "" && r.sites != nil && isThing(e.op.Kind) && !kept {
			if t := r.things[e.object]; t != nil && t.inside {
				continue // the operation of a fiber of the library, in which no value is lost
			}
		}
		if c := &calls[e.fiber]; at.call != "" && e.op.Kind < opAdvance {
			if c.includes(at) && !waits {
				rowOf[s] = c.row
				row := &all[c.row]
				row.Title += "\n" + text
				row.On = append(row.On, r.uses(e)...)
				if drops && !strings.Contains(c.text, " → ") {
					c.text += ": " + text
				}
				row.Text = c.text
				if e.how == policy.Closed || e.how == policy.TimedOut || e.how == policy.Cancelled {
					row.Text += ended(e.how)
				}
				continue
			}
			*c = call{at: at, row: len(all), text: at.call}
			if t := r.things[e.object]; t != nil && t.name != "" {
				c.text += " " + shown(t.name)
			}
			title += "\n" + text
			if drops {
				c.text += ": " + text
				text = c.text
			} else if text = c.text + ended(e.how); waits {
				text = at.call + ": " + r.did(e)
			}
		} else if e.op.Kind < opAdvance {
			*c = call{}
		}
		rowOf[s] = len(all)
		all = append(all, chart.Step{
			Actor: int(e.fiber), Number: r.before + s + 1, Kind: sortOf(e.op.Kind), Text: text, Title: title, At: e.at,
			Timed: r.timed(e), Mute: mute(e.op.Kind) && r.panicOf(e) == "", Waits: waits, On: r.uses(e),
		})
	}
	for _, n := range notes {
		all = append(all, n.Step)
	}
	return all, rowOf
}

// turns marks the rows after which the schedule leaves the plain order. Numbers that were drawn and faults have rows of
// their own, which show the decision.
func (r *findings) turns(rowOf []int) {
	rows := r.told.Steps
	for i := range r.branches {
		t := &r.branches[i]
		at := min(int(t.step)-r.before, len(rowOf)) - 1
		takes := t.to == search.Value && !t.drawn && t.fault == "" && at >= 0 && r.trace[at].fiber == t.by
		if t.chosen == 0 || t.to == search.Value && !takes {
			continue
		}
		for at >= 0 && rowOf[at] < 0 {
			at--
		}
		if at < 0 {
			continue
		}
		s := &rows[rowOf[at]]
		s.Switches++
		s.Takes, s.Passes = takes, t.to == search.Clock
		switch {
		case s.Takes:
			s.Switch = "the select takes a ready case other than the first"
		case s.Passes:
			s.Switch = "time passes, although a fiber can run"
		case t.keep && s.Actor == int(t.by):
			s.Switch = "another fiber gets the turn, although this one could continue"
		default:
			s.Switch = "a fiber other than the first that can run gets the turn"
		}
		if s.Switches > 1 {
			s.Switch = fmt.Sprintf("%d switches; the last: %s", s.Switches, s.Switch)
		}
	}
}

// uses returns the names of the channels, locks and other objects of an operation.
func (r *findings) uses(e *event) (names []string) {
	cases, _ := r.casesOf(e.cases)
	for _, c := range append([]choice{{e.op, e.object}}, cases...) {
		if t := r.things[c.object]; t != nil && isThing(c.op.Kind) {
			names = append(names, t.label)
		}
	}
	return names
}

// loses reports whether a value was lost in operation s: a send failed, or a channel dropped a value.
func (r *findings) loses(s int) bool {
	e := &r.trace[s]
	op := e.op
	if c, ok := r.chosen(e); ok {
		op = c.op
	}
	failed := e.how == policy.Closed || e.how == policy.TimedOut || e.how == policy.Cancelled
	return op.Kind == policy.Send && failed || r.drops(s)
}

// drops reports whether a channel dropped a value in operation s.
func (r *findings) drops(s int) bool {
	e := &r.trace[s]
	return e.how == policy.Dropped || e.how == policy.Displaced || r.discards(s) > 0
}

// discards returns how many values a channel held when operation s aborted it, or 0 if that is uncertain.
func (r *findings) discards(s int) int {
	if r.trace[s].op.Kind != policy.Abort {
		return 0
	}
	return r.told.Discarded(&r.told.Events[s])
}

// acted returns what operation s did, as did does. For an abort, it adds how many values the channel held. For one that
// takes a lock or another object, it adds whether the operation waited.
func (r *findings) acted(s int) string {
	e := &r.trace[s]
	if n := r.discards(s); n > 0 {
		return r.did(e) + " → " + report.Count(n, "value") + " dropped"
	}
	if e.op.Kind == policy.Use && e.op.Take > 0 && r.siteOf(s).served > 0 {
		return r.words(e.op, e.object, e.cases) + ": waits" + ended(e.how)
	}
	return r.did(e)
}

// mute reports whether operations of a kind say little about what their fiber does.
func mute(k policy.Kind) bool {
	return k == policy.Start || k == policy.End || k == policy.Join || k == policy.Cancel || k == opGoOn
}

// timed reports whether an operation waited for a time.
func (r *findings) timed(e *event) bool {
	if c, ok := r.chosen(e); ok {
		return c.op.Kind == policy.Sleep || c.op.Background
	}
	return e.op.Kind == policy.Sleep || e.op.Kind == policy.Use && e.op.Background
}

// call is a fiber's call of a function of the library that performs several operations.
type call struct {
	at   site // the place of its first operation
	row  int
	text string
}

// includes reports whether an operation belongs to the call. The next call at the same place begins in the same way.
func (c *call) includes(at site) bool {
	return c.at.file == at.file && c.at.line == at.line && c.at.call == at.call && c.at.path != at.path
}

// ended returns how an operation ended, as words to append to the operation.
func ended(how policy.Outcome) string {
	if text := how.String(); text != "" {
		return " → " + text
	}
	return ""
}

func sortOf(k policy.Kind) chart.Kind {
	switch {
	case onChannel(k):
		return chart.Channel
	case k == opFault:
		return chart.Fault
	}
	return chart.Plain
}

// waitsIn reports whether the fiber of operation s waits in it at the end.
func (r *findings) waitsIn(s int) bool {
	c := &r.fibers[r.trace[s].fiber]
	return c.waits && c.step == s
}

// remark is a row that is not an operation. It comes before operation number step.
type remark struct {
	chart.Step
	step int
}

// remarks returns what the program reported and the numbers that were drawn, in order.
func (r *findings) remarks() (all []remark) {
	for _, d := range r.draws {
		text := fmt.Sprintf("intn %d → %d", d.of, d.chosen)
		all = append(all, remark{chart.Step{Actor: int(d.drawn) - 1, Text: text}, int(d.step)})
	}
	for _, m := range r.marks {
		if m.fiber < 0 {
			continue
		}
		text, more := beginning(m.text)
		if more && m.kind == logMark {
			text += " …" // the whole text of an error is above the table
		}
		step := chart.Step{Actor: int(m.fiber), Text: m.kind + shown(text), Title: strings.TrimPrefix(m.at.at(), ", ")}
		if step.Logged = m.kind == logMark; !step.Logged { // rows for logs may be left out, because there may be many
			step.Kind = chart.Said
		}
		all = append(all, remark{step, m.step})
	}
	slices.SortStableFunc(all, func(a, b remark) int { return a.step - b.step })
	for i := range all {
		if s := min(all[i].step-r.before, len(r.trace)) - 1; s >= 0 {
			all[i].At = r.trace[s].at
		}
	}
	for len(all) > 0 && all[0].step < r.before {
		all = all[1:]
	}
	return all
}

// beginning returns the first line of a text, or its beginning if it is long. Otherwise more reports whether there are
// other lines.
func beginning(text string) (first string, more bool) {
	first, rest, _ := strings.Cut(strings.TrimLeft(text, "\r\n"), "\n")
	first = strings.TrimRight(first, "\r")
	if cut := []rune(first); len(cut) > mostSaid {
		return string(cut[:mostSaid]) + "…", false
	}
	return first, rest != ""
}

const mostIndexed = 20

// index writes the channels of a long table, and where each was made. The table itself shows the fibers, and the lines
// above it where those that wait were started.
func (r *findings) index() string {
	var channels []string
	named := func(t *thing) bool { return t.channel && !t.inside && t.name != "" && t.made.file != "" }
	for _, g := range r.groups(named) {
		made := strings.TrimPrefix(g.first.made.at(), ", at ")
		channels = append(channels, g.labels+" ("+made+r.capacity(g.first, g.n)+")")
	}
	if len(channels) == 0 {
		return ""
	}
	more := ""
	if n := len(channels) - mostIndexed; n > 0 {
		channels, more = channels[:mostIndexed], fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("  channels: %s%s\n", strings.Join(channels, ", "), more)
}
