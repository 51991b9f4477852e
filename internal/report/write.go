package report

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/coir-go/coir/internal/chart"
)

// This file writes a table.

// changed returns the time of a step if it differs from the last.
func (c *table) changed(s *chart.Step, last *time.Duration) string {
	now := c.time(s)
	if s.Number == 0 || !c.timed || now == *last {
		return ""
	}
	*last = now
	return now.String()
}

// time returns the time of a step, as precisely as a reader needs it.
func (c *table) time(s *chart.Step) time.Duration { return s.At.Round(max(c.Exact, 1)) }

// legend explains the marks of the table.
func (c *table) legend() {
	var diverges, turns, cases, passes, waits, arrow bool
	for _, row := range c.rows {
		if row.Left > 0 || row.Again > 0 {
			continue
		}
		s, here := &c.all[row.Step], row.Step == c.diverges
		diverges = diverges || here
		switch {
		case here || s.Switches == 0:
		case s.Takes:
			cases = true
		case s.Passes:
			passes = true
		default:
			turns = true
		}
		waits = waits || s.Waits
		arrow = arrow || strings.Contains(s.Text, " → ")
	}
	here := Sign{diverges, Mark, "diverges here from the schedule that passes"}
	if c.Forked > 0 {
		here.Meaning = "here the same decisions gave a different run"
	}
	then := "before this is done"
	if c.Done {
		then = "after this"
	}
	Legend(c, c.Indent,
		Sign{turns, ">", "leaves the plain order: another " + c.one() + " gets the turn " + then},
		Sign{cases, ">", "leaves the plain order: another case would come first"},
		Sign{passes, ">", "leaves the plain order: time passes after this, although a " + c.one() + " could run"},
		here, Sign{waits, WaitMark, "waits at the end"}, Sign{arrow, "→", "the result"})
	if c.Inside != "" && c.skipsNumbers() {
		c.line(c.Builder, "numbers that are missing are %s", c.Inside)
	}
}

// skipsNumbers reports whether the numbers of two rows do not follow each other, although no step between them is left
// out.
func (c *table) skipsNumbers() bool {
	for k := 1; k < len(c.rows); k++ {
		a, b := c.rows[k-1], c.rows[k]
		if a.Left == 0 && a.Again == 0 && b.Left == 0 && b.Again == 0 && b.Step == a.Step+1 &&
			c.numberOf(b.Step) > c.numberOf(a.Step)+1 {
			return true
		}
	}
	return false
}

// marked returns the number of a row with its mark: > for a switch, >> for several, or a mark that the schedule
// diverges.
func (c *table) marked(i int) string {
	number := ""
	if s := &c.all[i]; s.Number > 0 {
		number = strings.Repeat(">", min(s.Switches, 2)) + fmt.Sprint(s.Number)
	}
	if i == c.diverges {
		return Mark + strings.TrimLeft(number, ">")
	}
	return number
}

// write writes the head and the rows.
func (c *table) write() {
	c.row("step", func(i int) string {
		if name := c.Of[i].Label(); utf8.RuneCountInString(name) <= c.width[i] {
			return name
		}
		return breakable(c.Of[i].Label())
	}, c.head(), "")
	if c.Before > 0 {
		c.line(c.Builder, "... %s before", Count(c.Before, "step"))
	}
	last, gap := time.Duration(-1), gap{told: c.Before}
	next := 0 // the first step after those of the rows so far
	if n := len(c.start); n > 0 {
		end := c.start[n-1].Step
		first, last := &c.all[c.start[0].Step], &c.all[end]
		c.line(c.Builder, "... steps %d to %d: %s starts %s", first.Number, last.Number, c.Of[first.Actor].Label(),
			c.noun(c.starts(c.start)))
		next, gap.told = end+1, last.Number
	}
	for _, row := range c.rows {
		s := &c.all[row.Step]
		for next < row.Step && c.all[next].Aside {
			next++
		}
		if row.Left == 0 && row.Again == 0 && row.Step > next {
			gap.leave(row.Step - 1)
		}
		next = max(next, row.Step+1, row.Last+1)
		switch {
		case row.Left > 0:
			gap.leave(row.Last)
			continue
		case row.Again > 0:
			c.skip(&gap, c.numberOf(gap.last))
			gap.told = max(gap.told, c.all[row.Last].Number)
			if !s.Inner || len(row.Steps) > 1 {
				c.line(c.Builder, "... %s: %s, until step %d", c.does(row.Steps), Times(row.Again), c.all[row.Last].Number)
			}
			continue
		case !slices.Contains(c.shown, s.Actor):
			c.skip(&gap, s.Number-1)
			gap.told = s.Number
			text := said(c.Of[s.Actor].Label(), s.Text)
			if at := Place(s.Title); at != "" {
				text += ", at " + at
			}
			c.line(c.Builder, "%*s | %s", c.number, c.marked(row.Step), text)
			continue
		}
		c.skip(&gap, c.numberOf(row.Step)-min(s.Number, 1))
		gap.told = max(gap.told, c.numberOf(row.Step))
		at := c.changed(s, &last)
		c.row(c.marked(row.Step), func(i int) string {
			if i == s.Actor {
				return s.Text
			}
			return ""
		}, ShortPlace(Place(s.Title), c.file), at)
	}
	for next < len(c.all) && c.all[next].Aside {
		next++
	}
	if next < len(c.all) {
		gap.leave(len(c.all) - 1)
	}
	c.skip(&gap, c.Total)
	if hidden := c.withoutColumn(); hidden != "" {
		c.line(c.Builder, "... and %s", hidden)
	}
}

// withoutColumn returns in words how many actors have no column, and which of them are rivals.
func (c *table) withoutColumn() string {
	var texts []string
	requests := 0
	for i, a := range c.Of {
		if a.Request && !slices.Contains(c.shown, i) {
			requests++
		}
	}
	if others := len(c.Of) - len(c.shown) - requests; others > 0 {
		texts = append(texts, c.noun(others))
	}
	if requests > 0 {
		texts = append(texts, Count(requests, "request"))
	}
	if len(texts) == 0 {
		return ""
	}
	text := strings.Join(texts, " and ") + " without a column"
	hidden := slices.DeleteFunc(slices.Clone(c.rivals), func(i int) bool { return slices.Contains(c.shown, i) })
	if slices.Sort(hidden); len(hidden) > 0 {
		use := "use"
		if len(hidden) == 1 {
			use = "uses"
		}
		text += fmt.Sprintf(" (%s also %s %s)", c.List(hidden), use, strings.Join(c.contested, ", "))
	}
	return text
}

// gap describes the steps that the table has omitted since its last row.
type gap struct {
	told int  // the number of the last step that was shown, or reported as left out
	left bool // there are such steps
	last int  // the last of them
}

func (g *gap) leave(step int) { g.left, g.last = true, max(g.last, step) }

// numberOf returns the number of a row, or of the nearest row before it that has a number.
func (c *table) numberOf(row int) int {
	for ; row >= 0; row-- {
		if n := c.all[row].Number; n > 0 {
			return n
		}
	}
	return c.Before
}

// turnsIn names the steps in a gap where the schedule leaves the plain order.
func (c *table) turnsIn(from, to int) string {
	const most = 10
	text, n := "", 0
	for i := range c.all {
		if s := &c.all[i]; s.Switches > 0 && s.Number >= from && s.Number <= to {
			if n++; n <= most {
				text += fmt.Sprintf(" >%d", s.Number)
			}
		}
	}
	switch {
	case n == 0:
		return ""
	case n > most:
		text += fmt.Sprintf(" and %d more", n-most)
	}
	return ", with" + text
}

// skip writes which steps are omitted, up to and including step to. These may include steps of calls that have a row
// above.
func (c *table) skip(g *gap, to int) {
	if g.left && to > g.told {
		what := fmt.Sprintf("steps %d to %d", g.told+1, to)
		if to == g.told+1 {
			what = fmt.Sprintf("step %d", to)
		}
		c.line(c.Builder, "... %s left out%s", what, c.turnsIn(g.told+1, to))
		g.told = to
	}
	g.left, g.last = false, 0
}

// head returns the head of the column of places.
func (c *table) head() string {
	if c.file == "" {
		return ""
	}
	return "at " + filepath.Base(c.file)
}

// besides returns the text to the right of the columns.
func (c *table) besides(place, at string) string {
	right := at
	if c.place > 0 {
		right = fmt.Sprintf("%-*s %s", c.place, place, at)
	}
	return strings.TrimRight(" "+right, " ")
}

// row writes a row, in several lines if a cell is too long for its column.
func (c *table) row(number string, cell func(i int) string, place, at string) {
	cells, lines := make([][]string, len(c.shown)), 1
	for k, i := range c.shown {
		cells[k] = Wrap(cell(i), c.width[i])
		lines = max(lines, len(cells[k]))
	}
	right := c.besides(place, at)
	for n := range lines {
		fmt.Fprintf(c, "%s%*s |", c.Indent, c.number, number)
		for k, i := range c.shown {
			text := ""
			if n < len(cells[k]) {
				text = strings.ReplaceAll(cells[k][n], ".go :", ".go:")
			}
			fmt.Fprintf(c, " %s%s |", text, strings.Repeat(" ", c.width[i]-utf8.RuneCountInString(text)))
		}
		c.WriteString(right + "\n")
		number, right = "", ""
	}
}

// does returns a line about what actors do in some rows: "ticker sleep 10ms, try send tokens".
func (c *table) does(rows []int) string {
	var b strings.Builder
	for k, i := range rows {
		name, sep := c.Of[c.all[i].Actor].Label()+" ", "; "
		if k == 0 {
			sep = ""
		} else if c.all[rows[k-1]].Actor == c.all[i].Actor {
			name, sep = "", ", "
		}
		b.WriteString(sep + name + c.all[i].Text)
	}
	return b.String()
}
