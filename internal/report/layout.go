package report

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/coir-go/coir/internal/chart"
)

// This file chooses the rows of a table, and finds the widths of its columns.

// layOut returns a table with at most the given number of columns, and without those of the given actors; nil if there
// is nothing to show.
func (t *Trace) layOut(b *strings.Builder, most int, without map[int]bool) *table {
	all := slices.Clone(t.Steps)
	for len(all) > 0 && all[len(all)-1].Number > t.Total {
		all = all[:len(all)-1] // steps after the failure do not matter
	}
	if len(all) == 0 {
		return nil
	}
	c := &table{Trace: t, Builder: b, all: all, diverges: t.diverges(all)}
	if c.diverges >= 0 {
		all[c.diverges].Timed = false // so that it is kept
	}
	c.findTurns()
	c.contested, c.rivals = t.rivals(all, c.diverges)
	c.shown = t.columns(all, c.diverges, c.rivals, most, without)
	for i := range all {
		if all[i].Waits {
			all[i].Text += " " + WaitMark
		}
	}
	c.chooseRows()
	if c.findEnds() {
		c.chooseRows()
	}
	used := map[int]bool{}
	c.each(func(_ int, s *chart.Step) { used[s.Actor] = true })
	c.shown = slices.DeleteFunc(c.shown, func(i int) bool { return !used[i] })
	c.measure()
	return c
}

// chooseRows chooses the rows of the table.
func (c *table) chooseRows() {
	c.start, c.rows = nil, nil
	own := 0
	for i := range c.all {
		decides, aside := c.decides(i), c.all[i].Aside
		if decides || slices.Contains(c.shown, c.all[i].Actor) && !aside {
			c.rows = append(c.rows, chart.Row{Step: i})
		}
		if decides || !aside {
			own++
		}
	}
	c.foldStart()
	if own > MostRows || len(c.rows)+len(c.start) < own {
		c.thin()
	}
}

// decides reports whether a row decides how the schedule ends: a fault, a signal that an actor missed, what closed or
// cancelled what another row found so, where the schedule leaves the plain order, or where it diverges from one that
// passes. Such a row is in the table even if its actor has no column.
func (c *table) decides(i int) bool {
	s := &c.all[i]
	return s.Kind == chart.Fault || c.turns[i] || s.Missed || c.ended[i] || i == c.diverges
}

// findTurns sets the rows where the schedule leaves the plain order, the last ones before the divergence if there are
// many: then few of them matter.
func (c *table) findTurns() {
	var all []int
	before := 0
	for i := range c.all {
		if c.all[i].Switches > 0 {
			if all = append(all, i); c.diverges < 0 || i <= c.diverges {
				before++
			}
		}
	}
	from := max(before, mostTurns) - mostTurns
	c.turns = map[int]bool{}
	for _, i := range all[from:min(from+mostTurns, len(all))] {
		c.turns[i] = true
	}
}

// pinned returns the rows that a long table keeps if there is room.
func (c *table) pinned() map[int]bool {
	keep := map[int]bool{}
	near := func(i, before, after int) {
		for k := i - before; k <= i+after; k++ {
			keep[k] = true
		}
	}
	split := len(c.all)
	if c.diverges >= 0 {
		split = c.diverges
		near(split, beforeDiverge, afterDiverge)
	}
	var switches, held []int // held: the steps that took what others wait for
	for _, w := range c.Waiting {
		for _, x := range w.Wishes {
			for _, h := range x.By {
				held = append(held, h.Step)
			}
		}
	}
	before := 0
	for i := range c.all {
		switch s := &c.all[i]; {
		case s.Waits, s.Missed, c.ended[i], s.Kind == chart.Said, slices.Contains(held, s.Number) && s.Number > 0:
			keep[i] = true
		case s.Switches > 0:
			if switches = append(switches, i); i <= split {
				before++
			}
		}
	}
	from := max(before, mostSwitches) - mostSwitches
	for k, i := range switches {
		keep[i] = keep[i] || c.turns[i]
		if k >= from && k < from+mostSwitches { // the last ones before the divergence
			near(i, aroundSwitch, aroundSwitch)
		}
	}
	for _, i := range logged(c.all, mostLogged) {
		keep[i] = true
	}
	faults, n := c.Faults(mostFaults)
	for _, i := range faults {
		keep[i] = true
		keep[i+1] = keep[i+1] || n <= mostSaid // perhaps the value that was drawn for the fault
	}
	cut := map[int]bool{} // the actors whose last step that was cut short is kept
	for _, i := range c.Broken {
		if i < len(c.all) && !cut[c.all[i].Actor] {
			keep[i], cut[c.all[i].Actor] = true, true
		}
	}
	for _, actor := range c.rivals { // the use that is the nearest to the divergence
		nearest := -1
		for i := range c.all {
			if s := &c.all[i]; s.Actor == actor && s.Uses(c.contested) &&
				(nearest < 0 || abs(i-c.diverges) < abs(nearest-c.diverges)) {
				nearest = i
			}
		}
		keep[nearest] = true
	}
	left := beforeFail
	for _, f := range c.Failing { // their last steps before they failed; more for the first of them
		for i := len(c.all) - 1; i >= 0 && left > 0; i-- {
			if s := &c.all[i]; s.Actor == f && (c.FailedAt == 0 || s.Number <= c.FailedAt) {
				keep[i], s.Timed = true, false
				left--
			}
		}
		left = 1
	}
	return keep
}

// leastStart is the number of rows from which on a start is one line.
const leastStart = 3

// foldStart removes the first rows from the table if one actor starts others in them and nothing else happens. One line
// replaces them, which says how many were started.
func (c *table) foldStart() {
	n, next := 0, 0
	for n < len(c.rows) {
		at := c.rows[n].Step
		for next < at && c.all[next].Aside {
			next++
		}
		s := &c.all[at]
		if at != next || !s.Starts || s.Waits || s.Switches > 0 || s.Actor != c.all[0].Actor || at == c.diverges {
			break
		}
		n, next = n+1, at+1
	}
	if n >= leastStart && c.starts(c.rows[:n]) > 0 {
		c.start, c.rows = c.rows[:n], c.rows[n:]
	}
}

// starts returns how many actors are started in some rows.
func (c *table) starts(rows []chart.Row) (n int) {
	for _, s := range c.Starts {
		if slices.ContainsFunc(rows, func(r chart.Row) bool { return r.Step == s.Step }) {
			n++
		}
	}
	return n
}

// thin shows repetitions among the rows once, and leaves rows out if there are still too many.
func (c *table) thin() {
	steps, before := make([]chart.Step, len(c.rows)), 0 // those of the rows
	keep := c.pinned()
	for k, row := range c.rows {
		if steps[k] = c.all[row.Step]; c.diverges < 0 || row.Step < c.diverges {
			before = k + 1
		}
	}
	own := func(k int) bool { return keep[c.rows[k].Step] }
	kept, _ := chart.Rows(steps, own, before)
	must := func(k int) bool { return own(k) && c.decides(c.rows[k].Step) }
	kept = chart.Thin(steps, kept, must, own, MostRows)
	for i := range kept {
		k := &kept[i]
		k.Step, k.Last = c.rows[k.Step].Step, c.rows[k.Last].Step
		for n, step := range k.Steps {
			k.Steps[n] = c.rows[step].Step
		}
	}
	c.rows = kept
}

// each calls fn for the rows of the table that are steps of its columns.
func (c *table) each(fn func(i int, s *chart.Step)) {
	for _, row := range c.rows {
		if s := &c.all[row.Step]; row.Left == 0 && row.Again == 0 && slices.Contains(c.shown, s.Actor) {
			fn(row.Step, s)
		}
	}
}

// measure finds the widths of the columns.
func (c *table) measure() {
	most := max(leastWidth, tableWidth/max(1, len(c.shown)))
	c.width, c.number = make([]int, len(c.Of)), 5
	for _, i := range c.shown {
		c.width[i] = max(narrowest, utf8.RuneCountInString(c.Of[i].Label()))
	}
	var places []string
	c.each(func(i int, s *chart.Step) {
		c.width[s.Actor] = max(c.width[s.Actor], utf8.RuneCountInString(s.Text))
		c.number = max(c.number, len(c.marked(i)))
		c.timed = c.timed || c.time(s) > 0
		places = append(places, Place(s.Title))
	})
	for i := range c.width {
		c.width[i] = min(c.width[i], most)
	}
	c.file = CommonFile(places)
	for _, at := range places {
		if short := ShortPlace(at, c.file); strings.HasPrefix(short, ":") {
			c.place = max(c.place, len(short))
		}
	}
	last := time.Duration(-1)
	c.right, c.least = utf8.RuneCountInString(c.besides(c.head(), "")), make([]int, len(c.Of))
	word := func(i int, text string) {
		for _, one := range words(text) {
			c.least[i] = max(c.least[i], min(utf8.RuneCountInString(one), longestWord, c.width[i]))
		}
	}
	for _, i := range c.shown {
		word(i, breakable(c.Of[i].Label()))
	}
	c.each(func(_ int, s *chart.Step) {
		word(s.Actor, s.Text)
		c.right = max(c.right, utf8.RuneCountInString(c.besides(ShortPlace(Place(s.Title), c.file), c.changed(s, &last))))
	})
}

// breakable returns a name in the form that is broken into lines: a line number may begin a line, too.
func breakable(name string) string { return strings.ReplaceAll(name, ".go:", ".go :") }

// room returns the unused width of the table, if columns are limited to most characters, or to their longest word if
// that is longer. It is negative if the table does not fit.
func (c *table) room(most int) int {
	if c.Width == 0 {
		return 0
	}
	room := c.Width - len(c.Indent) - c.number - len(" |") - c.right
	for _, i := range c.shown {
		room -= max(c.least[i], min(c.width[i], most)) + len("  |")
	}
	return room
}

// fit makes columns narrower, the widest first, until the table fits its maximum width. It breaks cells between words
// if it can.
func (c *table) fit() {
	most := tableWidth
	for most > narrowest && c.room(most) < 0 {
		most--
	}
	for c.room(most) < 0 && slices.Max(c.least) > narrowest { // break words
		longest := slices.Max(c.least)
		for i := range c.least {
			c.least[i] = min(c.least[i], longest-1)
		}
	}
	for _, i := range c.shown {
		c.width[i] = max(c.least[i], min(c.width[i], most))
	}
}
