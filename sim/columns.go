package sim

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/coir-go/coir/internal/chart"
	"github.com/coir-go/coir/internal/policy"
)

// The rows of a failure as a text: a column for each fiber, and behind them the line of the program and the time.

const (
	narrowest   = 6
	tableWidth  = 150 // of all columns together, if their cells are long
	leastWidth  = 20
	mostColumns = 8
	mostRows    = 60
	beforeParts = 3  // rows that are kept before the one where the schedule went another way
	afterParts  = 24 // and after it
	mostSaid    = 60 // letters of a text of Errorf
	mostFired   = 15 // faults of a long table
)

// table writes a column for each fiber, and the operations in order from top to bottom, each with its line. Above it
// stands what its marks mean. Of a long table it tells repetitions once, and leaves out what is far from the end, from
// the faults and from what each fiber did last.
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
			all[rowOf[s]].Text += " " + chart.WaitMark
			waits[rowOf[s]] = true
		}
	}
	parts, split := -1, len(all)
	if t := r.passing(); t != nil && t.Here < len(all) {
		parts, split = t.Here, t.Here
	} else if r.forked > 0 {
		if i := slices.IndexFunc(all, func(s chart.Step) bool { return s.Number > r.forked }); i >= 0 {
			parts, split = i, i
		}
	}
	if parts >= 0 {
		all[parts].Timed = false // so that it is kept
	}
	shown := r.shown(all, parts)
	var rows []chart.Row
	for i := range all {
		if all[i].Kind == chart.Fault || slices.Contains(shown, all[i].Actor) {
			rows = append(rows, chart.Row{Step: i})
		}
	}
	if len(all) > mostRows {
		near := func(i int) bool { return parts >= 0 && i >= parts-beforeParts && i <= parts+afterParts }
		keep := map[int]bool{}
		faults, _ := r.fired(mostFired)
		for _, s := range faults {
			keep[rowOf[s]] = true
			keep[rowOf[s]+1] = len(faults) <= mostFaults // perhaps what was drawn for it
		}
		if r.Kind == KindBlocked { // what its fibers did last
			for _, f := range r.failing() {
				for i := len(all) - 1; i >= 0; i-- {
					if all[i].Actor == f {
						keep[i], all[i].Timed = true, false
						break
					}
				}
			}
		}
		pinned := func(i int) bool { return waits[i] || all[i].Kind == chart.Said || near(i) || keep[i] }
		rows = thinned(all, rows, pinned, split)
		r.index(b, all)
	}
	c := &columns{report: r, Builder: b, all: all, rows: rows, parts: parts, shown: shown}
	used := make([]bool, len(r.fibers))
	c.each(func(_ int, s *chart.Step) { used[s.Actor] = true })
	c.shown = slices.DeleteFunc(shown, func(i int) bool { return !used[i] })
	c.measure()
	c.legend(waits)
	c.write()
}

// thinned tells repetitions among some rows once, and leaves rows out if there are still too many.
func thinned(all []chart.Step, rows []chart.Row, pinned func(step int) bool, split int) []chart.Row {
	steps, before := make([]chart.Step, len(rows)), 0 // those of the rows
	for k, row := range rows {
		if steps[k] = all[row.Step]; row.Step < split {
			before = k + 1
		}
	}
	own := func(k int) bool { return pinned(rows[k].Step) }
	kept, _ := chart.Rows(steps, own, before)
	kept = chart.Thin(steps, kept, own, mostRows)
	for i := range kept {
		k := &kept[i]
		k.Step, k.Last = rows[k.Step].Step, rows[k.Last].Step
		for n, step := range k.Steps {
			k.Steps[n] = rows[step].Step
		}
	}
	return kept
}

// columns is the table as it is written.
type columns struct {
	*report
	*strings.Builder
	all   []chart.Step
	rows  []chart.Row
	parts int   // the row where the schedule went another way; -1: none
	shown []int // fibers that have a column

	width []int  // of the column of each fiber
	file  string // of most lines
	place int    // width of the column of lines, without those of other files
	timed bool   // there are other times than 0
}

// each calls fn for the rows of the table that are steps of its columns.
func (c *columns) each(fn func(i int, s *chart.Step)) {
	for _, row := range c.rows {
		if s := &c.all[row.Step]; row.Left == 0 && row.Again == 0 && slices.Contains(c.shown, s.Actor) {
			fn(row.Step, s)
		}
	}
}

// measure finds the widths of the columns.
func (c *columns) measure() {
	most := max(leastWidth, tableWidth/max(1, len(c.shown)))
	c.width = make([]int, len(c.fibers))
	for _, i := range c.shown {
		c.width[i] = max(narrowest, utf8.RuneCountInString(c.labels[i]))
	}
	var places []string
	c.each(func(_ int, s *chart.Step) {
		c.width[s.Actor] = max(c.width[s.Actor], utf8.RuneCountInString(s.Text))
		c.timed = c.timed || s.At > 0
		places = append(places, chart.Place(s.Title))
	})
	for i := range c.width {
		c.width[i] = min(c.width[i], most)
	}
	c.file = chart.CommonFile(places)
	for _, at := range places {
		if short := chart.ShortPlace(at, c.file); strings.HasPrefix(short, ":") {
			c.place = max(c.place, len(short))
		}
	}
}

// legend writes what the marks of the table mean.
func (c *columns) legend(waits map[int]bool) {
	var parts, waited, arrow bool
	c.each(func(i int, s *chart.Step) {
		parts = parts || i == c.parts
		waited = waited || waits[i]
		arrow = arrow || strings.Contains(s.Text, " → ")
	})
	part := chart.PartSign(parts)
	if c.forked > 0 {
		part.Meaning = "here the same decisions led another way"
	}
	came := chart.Sign{Used: arrow, Mark: "→", Meaning: "what came of it"}
	chart.Legend(c, "  ", "", part, chart.WaitSign(waited), came)
}

// write writes the head and the rows.
func (c *columns) write() {
	place := ""
	if c.file != "" {
		place = "at " + filepath.Base(c.file)
	}
	c.row("step", func(i int) string { return c.labels[i] }, place, "")
	if c.before > 0 {
		fmt.Fprintf(c, "  ... %s before\n", counted(c.before, "step"))
	}
	last, gap := time.Duration(-1), gap{told: c.before}
	next := 0 // the first step after those of the rows so far
	for _, row := range c.rows {
		s := &c.all[row.Step]
		if row.Left == 0 && row.Again == 0 && row.Step > next {
			gap.leave(row.Step - 1)
		}
		next = max(next, row.Step+1, row.Last+1)
		switch {
		case row.Left > 0:
			gap.leave(row.Last)
			continue
		case row.Again > 0:
			c.skip(&gap, c.number(gap.last))
			gap.told = max(gap.told, c.all[row.Last].Number)
			fmt.Fprintf(c, "  ... %s: %s, until step %d\n", c.does(c.all, row.Steps), chart.Times(row.Again),
				c.all[row.Last].Number)
			continue
		case !slices.Contains(c.shown, s.Actor) && s.Kind == chart.Fault:
			c.skip(&gap, s.Number-1)
			gap.told = s.Number
			fmt.Fprintf(c, "  %5d | %s %s", s.Number, c.labels[s.Actor], s.Text)
			if at := chart.Place(s.Title); at != "" {
				fmt.Fprintf(c, ", at %s", at)
			}
			c.WriteString("\n")
			continue
		}
		c.skip(&gap, c.number(row.Step)-min(s.Number, 1))
		gap.told = max(gap.told, c.number(row.Step))
		number, at := "", ""
		if s.Number > 0 {
			number = fmt.Sprint(s.Number)
			if c.timed && s.At != last {
				at, last = s.At.String(), s.At
			}
		}
		if row.Step == c.parts {
			number = chart.Mark + number
		}
		c.row(number, func(i int) string {
			if i == s.Actor {
				return s.Text
			}
			return ""
		}, chart.ShortPlace(chart.Place(s.Title), c.file), at)
	}
	if next < len(c.all) {
		gap.leave(len(c.all) - 1)
	}
	c.skip(&gap, c.Steps)
	if hidden := len(c.fibers) - len(c.shown); hidden > 0 {
		fmt.Fprintf(c, "  ... and %s without a column\n", counted(hidden, "fiber"))
	}
}

// gap is what the table has left out since its last row.
type gap struct {
	told int  // the number of the last step that was shown, or said to be left out
	left bool // there are such steps
	last int  // the last of them
}

func (g *gap) leave(step int) { g.left, g.last = true, max(g.last, step) }

// number returns the number of a step, or of the one before it if it has none.
func (c *columns) number(step int) int {
	for ; step >= 0; step-- {
		if n := c.all[step].Number; n > 0 {
			return n
		}
	}
	return c.before
}

// skip writes which steps are left out, up to one. They may include steps of calls that have a row above.
func (c *columns) skip(g *gap, to int) {
	if g.left && to > g.told {
		what := fmt.Sprintf("steps %d to %d", g.told+1, to)
		if to == g.told+1 {
			what = fmt.Sprintf("step %d", to)
		}
		fmt.Fprintf(c, "  ... %s left out\n", what)
		g.told = to
	}
	g.left, g.last = false, 0
}

// row writes a row, in several lines if a cell is too long for its column.
func (c *columns) row(number string, cell func(i int) string, place, at string) {
	cells, lines := make([][]string, len(c.shown)), 1
	for k, i := range c.shown {
		cells[k] = chart.Wrap(cell(i), c.width[i])
		lines = max(lines, len(cells[k]))
	}
	right := at
	if c.place > 0 {
		right = fmt.Sprintf("%-*s %s", c.place, place, at)
	}
	right = strings.TrimRight(" "+right, " ")
	for n := range lines {
		fmt.Fprintf(c, "  %5s |", number)
		for k, i := range c.shown {
			text := ""
			if n < len(cells[k]) {
				text = cells[k][n]
			}
			fmt.Fprintf(c, " %s%s |", text, strings.Repeat(" ", c.width[i]-utf8.RuneCountInString(text)))
		}
		c.WriteString(right + "\n")
		number, right = "", ""
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

// mostDecided is the most decisions that each give their fibers a column.
const mostDecided = 12

// shown chooses the fibers that get a column, if there are too many. Of those that have a row these are first: those
// that fail; those that ran where the schedule went another way; the one of the last step before the failure; those in
// which faults happened; those of the decisions that matter, if they are few; and those that wait at the end. Then come
// the others, by their last operation that says something.
//
// Guarded by TestColumnsAreOfTheFibersThatMatter.
func (r *report) shown(all []chart.Step, parts int) (fibers []int) {
	acts, have := make([]bool, len(r.fibers)), make([]bool, len(r.fibers))
	for i := range all {
		acts[all[i].Actor] = true
	}
	add := func(i int) {
		if i >= 0 && i < len(acts) && acts[i] && !have[i] && len(fibers) < mostColumns {
			have[i] = true
			fibers = append(fibers, i)
		}
	}
	for _, i := range r.failing() {
		add(i)
	}
	if parts >= 0 {
		add(all[parts].Actor)
	}
	if q, at, ok := r.parts(); ok {
		for _, b := range []branch{r.branches[at], q.branches[at]} {
			add(int(b.by))
			add(int(b.to))
		}
	}
	end := len(r.trace)
	if at := r.failedAt() - r.before; at > 0 {
		end = min(end, at)
	}
	if end > 0 {
		add(int(r.trace[end-1].fiber))
	}
	faults, _ := r.fired(mostFired)
	for _, s := range slices.Backward(faults) {
		add(int(r.trace[s].fiber))
	}
	if r.Switches <= mostDecided {
		for _, b := range slices.Backward(r.branches) {
			if b.chosen == 0 {
				continue
			}
			if add(int(b.to)); b.to < 0 {
				add(int(b.by))
			}
		}
	}
	for i := range r.fibers {
		if r.fibers[i].waits {
			add(i)
		}
	}
	for _, telling := range []bool{true, false} {
		for _, e := range slices.Backward(r.trace[:end]) {
			if !telling || r.tells(&e) {
				add(int(e.fiber))
			}
		}
	}
	for i := range r.fibers {
		add(i)
	}
	slices.Sort(fibers)
	return fibers
}

// failing returns the fibers that fail: those of a cycle and the others that wait in a deadlock, those that reported
// errors, and the one that panicked or is blocked.
func (r *report) failing() (fibers []int) {
	switch r.Kind {
	case KindDeadlock:
		fibers, _ = r.cycle()
		for i := range r.fibers {
			if r.fibers[i].waits && !r.ticks(i) {
				fibers = append(fibers, i)
			}
		}
	case KindBlocked:
		for i := range r.fibers {
			if r.native != nil && r.fibers[i].f == r.native.fiber {
				fibers = append(fibers, i)
			}
		}
		fibers = append(fibers, r.mayHold()...)
	case KindPanic:
		for i, name := range r.names {
			if strings.HasPrefix(r.Text, "panic in fiber "+name+": ") {
				fibers = append(fibers, i)
			}
		}
	}
	for _, kind := range []bool{true, false} {
		for _, m := range r.marks {
			if (m.kind == errorMark) == kind {
				fibers = append(fibers, int(m.fiber))
			}
		}
	}
	return fibers
}

// tells reports whether an operation says something about what its fiber does.
func (r *report) tells(e *event) bool {
	switch e.op.Kind {
	case policy.Start, policy.End, policy.Join, policy.Cancel, opGoOn:
		return false
	}
	return !r.timed(e)
}
