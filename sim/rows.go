package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/coir-go/coir/internal/chart"
	"github.com/coir-go/coir/internal/policy"
)

// The operations of a failure in order, as rows of the table and of the chart. Between them are rows that are not
// operations: what the program reported, and the numbers that were drawn. The operations that a function of the library
// does for one call of the program are one row, which has the name of the function: they are not the program's.

// rows returns the rows, and for each operation of the trace its row, or -1.
func (r *report) rows() (all []chart.Step, rowOf []int) {
	rowOf = make([]int, len(r.trace))
	calls := make([]call, len(r.fibers))
	notes := r.remarks()
	for s := range r.trace {
		for len(notes) > 0 && notes[0].step <= r.before+s {
			all, notes = append(all, notes[0].Step), notes[1:]
		}
		e, at := &r.trace[s], r.siteOf(s)
		text, title, waits := r.did(e), strings.TrimPrefix(at.at(), ", "), r.waitsIn(s)
		rowOf[s] = -1
		if at.file == "" && r.sites != nil && isThing(e.op.Kind) && !waits {
			if t := r.things[e.object]; t != nil && t.inside {
				continue // of a fiber of the library
			}
		}
		if c := &calls[e.fiber]; at.call != "" && e.op.Kind < opAdvance {
			if c.goesOn(at) && !waits {
				rowOf[s] = c.row
				row := &all[c.row]
				row.Title += "\n" + text
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
			if text = c.text + ended(e.how); waits {
				text = at.call + ": " + r.did(e)
			}
		} else if e.op.Kind < opAdvance {
			*c = call{}
		}
		rowOf[s] = len(all)
		all = append(all, chart.Step{
			Actor: int(e.fiber), Number: r.before + s + 1, Kind: sortOf(e.op.Kind), Text: text, Title: title, At: e.at,
			Timed: r.timed(e),
		})
	}
	for _, n := range notes {
		all = append(all, n.Step)
	}
	return all, rowOf
}

// timed reports whether an operation waited for a time.
func (r *report) timed(e *event) bool {
	if c, ok := r.chosen(e); ok {
		return c.op.Kind == policy.Sleep || c.op.Background
	}
	return e.op.Kind == policy.Sleep || e.op.Kind == policy.Use && e.op.Background
}

// call is a call of a function of the library by a fiber, which does several operations.
type call struct {
	at   site // of its first operation
	row  int
	text string
}

// goesOn reports whether an operation belongs to the call. The next call at the same place begins as this one did.
func (c *call) goesOn(at site) bool {
	return c.at.file == at.file && c.at.line == at.line && c.at.call == at.call && c.at.path != at.path
}

// ended returns how an operation ended, in words that follow what it was.
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
func (r *report) waitsIn(s int) bool {
	c := &r.fibers[r.trace[s].fiber]
	return c.waits && c.step == s
}

// remark is a row that is no operation, before operation number step.
type remark struct {
	chart.Step
	step int
}

// remarks returns what the program reported and the numbers that were drawn, in order.
func (r *report) remarks() (all []remark) {
	for _, d := range r.draws {
		text := fmt.Sprintf("intn %d → %d", d.of, d.chosen)
		all = append(all, remark{chart.Step{Actor: int(d.drawn) - 1, Text: text}, int(d.step)})
	}
	for _, m := range r.marks {
		if m.fiber < 0 {
			continue
		}
		text, _, _ := strings.Cut(m.text, "\n")
		if cut := []rune(text); len(cut) > mostSaid {
			text = string(cut[:mostSaid]) + "…"
		}
		title := strings.TrimPrefix(m.at.at(), ", ")
		all = append(all, remark{chart.Step{Actor: int(m.fiber), Kind: chart.Said, Text: m.kind + shown(text), Title: title}, m.step})
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

const (
	narrowest   = 6
	tableWidth  = 150 // of all columns together, if their cells are long
	leastWidth  = 20
	mostColumns = 8
	mostRows    = 60
	beforeParts = 3  // rows that are kept before the one where the schedule went another way
	afterParts  = 24 // and after it
	mostSaid    = 60 // letters of a text of Errorf
)

// table writes a column for each fiber, and the operations in order from top to bottom, with a * where a fiber waits.
// An arrow marks where the schedule went another way than one that passes. Of a long table it tells repetitions once,
// and leaves out what is far from the end and from what each fiber did last.
//
// Guarded by TestLongTraces.
func (r *report) table(b *strings.Builder) {
	all, rowOf := r.rows()
	if len(all) == 0 {
		return
	}
	waits := map[int]bool{}
	for s := range r.trace {
		if r.waitsIn(s) && rowOf[s] >= 0 {
			all[rowOf[s]].Text += " *"
			waits[rowOf[s]] = true
		}
	}
	rows := make([]chart.Row, len(all))
	for i := range rows {
		rows[i].Step = i
	}
	parts, split := -1, len(all)
	if t := r.passing(); t != nil && t.Here < len(all) {
		parts, split = t.Here, t.Here
	}
	if len(all) > mostRows {
		near := func(i int) bool { return parts >= 0 && i >= parts-beforeParts && i <= parts+afterParts }
		pinned := func(i int) bool { return waits[i] || all[i].Kind == chart.Said || near(i) }
		rows, _ = chart.Rows(all, pinned, split)
		rows = chart.Thin(all, rows, pinned, mostRows)
		r.index(b, all)
	}
	shown := r.shown(all, rows, mostColumns)
	width, most := make([]int, len(r.fibers)), max(leastWidth, tableWidth/max(1, len(shown)))
	timed := false
	for _, i := range shown {
		width[i] = max(narrowest, utf8.RuneCountInString(r.labels[i]))
	}
	for _, row := range rows {
		if s := &all[row.Step]; row.Left == 0 {
			width[s.Actor] = max(width[s.Actor], utf8.RuneCountInString(s.Text))
			timed = timed || s.At > 0
		}
	}
	// write writes a row, in several lines if a cell is too long for its column.
	write := func(left string, cell func(i int) string, right string) {
		cells, lines := make([][]string, len(shown)), 1
		for k, i := range shown {
			cells[k] = chart.Wrap(cell(i), min(width[i], most))
			lines = max(lines, len(cells[k]))
		}
		for n := range lines {
			fmt.Fprintf(b, "  %5s |", left)
			for k, i := range shown {
				text := ""
				if n < len(cells[k]) {
					text = cells[k][n]
				}
				w := min(width[i], most)
				fmt.Fprintf(b, " %s%s |", text, strings.Repeat(" ", w-utf8.RuneCountInString(text)))
			}
			b.WriteString(right + "\n")
			left, right = "", ""
		}
	}
	write("step", func(i int) string { return r.labels[i] }, "")
	if r.before > 0 {
		fmt.Fprintf(b, "  ... %s before\n", counted(r.before, "step"))
	}
	last, left := time.Duration(-1), 0
	skip := func() {
		if left > 0 {
			fmt.Fprintf(b, "  ... %s left out\n", counted(left, "step"))
		}
		left = 0
	}
	for _, row := range rows {
		s := &all[row.Step]
		switch {
		case row.Left > 0:
			left += row.Left
			continue
		case row.Again > 0:
			skip()
			fmt.Fprintf(b, "  ... %s: %s, until step %d\n", r.does(all, row.Steps), chart.Times(row.Again), all[row.Last].Number)
			continue
		case !slices.Contains(shown, s.Actor):
			left++
			continue
		}
		skip()
		number, right := "", ""
		if s.Number > 0 {
			number = fmt.Sprint(s.Number)
			if timed && s.At != last {
				right, last = " "+s.At.String(), s.At
			}
		}
		if row.Step == parts {
			number = chart.Mark + number
		}
		write(number, func(i int) string {
			if i == s.Actor {
				return s.Text
			}
			return ""
		}, right)
	}
	skip()
	if hidden := len(r.fibers) - len(shown); hidden > 0 {
		fmt.Fprintf(b, "  ... and %s without a column\n", counted(hidden, "fiber"))
	}
}

// does returns what fibers do in some rows, in a line: "ticker sleep 10ms, try send tokens".
func (r *report) does(all []chart.Step, rows []int) string {
	var b strings.Builder
	for k, i := range rows {
		s := &all[i]
		switch {
		case k == 0:
			b.WriteString(r.labels[s.Actor] + " ")
		case all[rows[k-1]].Actor == s.Actor:
			b.WriteString(", ")
		default:
			b.WriteString("; " + r.labels[s.Actor] + " ")
		}
		b.WriteString(s.Text)
	}
	return b.String()
}

// shown chooses the fibers that get a column, if there are too many: those that do something in the table, and first of
// them those that have reported something, those that ran where the schedule went another way, and those that wait at
// its end.
func (r *report) shown(all []chart.Step, rows []chart.Row, most int) []int {
	acts, first := make([]bool, len(r.fibers)), make([]bool, len(r.fibers))
	for _, row := range rows {
		if s := &all[row.Step]; row.Left == 0 {
			acts[s.Actor] = true
			first[s.Actor] = first[s.Actor] || s.Kind == chart.Said
		}
	}
	if q, at, ok := r.parts(); ok {
		for _, b := range []branch{r.branches[at], q.branches[at]} {
			for _, i := range []int32{b.by, b.to} {
				if i >= 0 && int(i) < len(first) {
					first[i] = true
				}
			}
		}
	}
	for i := range first {
		first[i] = first[i] || r.fibers[i].waits
	}
	return chart.Columns(len(r.fibers), most, func(i int) bool { return first[i] }, func(i int) bool { return acts[i] })
}

const mostIndexed = 20

// index writes which fibers and channels a long table is about: of the fibers that do not wait, which have a line
// above, how many steps each did, and where it was started; and where each channel was made.
func (r *report) index(b *strings.Builder, all []chart.Step) {
	steps, last := make([]int, len(r.fibers)), make([]int, len(r.fibers))
	for _, s := range all {
		if s.Number > 0 {
			steps[s.Actor]++
			last[s.Actor] = s.Number
		}
	}
	var fibers, channels []string
	for i, c := range r.fibers {
		if steps[i] == 0 || c.waits && !r.ticks(i) {
			continue
		}
		text := fmt.Sprintf("%s (steps: %s, the last is %d", r.labels[i], chart.Grouped(steps[i]), last[i])
		if c.ended {
			text += ", ended"
		}
		fibers = append(fibers, text+strings.Replace(spawned(c), ";", ",", 1)+")")
	}
	for _, g := range r.groups(func(t *thing) bool { return t.channel && !t.inside && t.name != "" && t.made.file != "" }) {
		channels = append(channels, g.labels+" ("+strings.TrimPrefix(g.first.made.at(), ", at ")+")")
	}
	list := func(what string, texts []string) {
		if len(texts) == 0 {
			return
		}
		more := ""
		if n := len(texts) - mostIndexed; n > 0 {
			texts, more = texts[:mostIndexed], fmt.Sprintf(" and %d more", n)
		}
		fmt.Fprintf(b, "  %s: %s%s\n", what, strings.Join(texts, ", "), more)
	}
	what := "fibers"
	if slices.ContainsFunc(r.fibers, func(c column) bool { return c.waits }) {
		what = "other fibers"
	}
	list(what, fibers)
	list("channels", channels)
}
