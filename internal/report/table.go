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

// The steps of a trace as text: a column for each actor, then the line of the program and the time.

// MostRows is the approximate maximum number of rows of a table.
const MostRows = 60

const (
	narrowest     = 6
	tableWidth    = 150 // the width of all columns together, if their cells are long
	leastWidth    = 20
	mostColumns   = 8
	longestWord   = 24 // words of this length are not broken
	goodWidth     = 18 // columns with one row are left out, so that the others can have this width
	poorWidth     = 12 // the least important columns are left out, so that the others can have this width
	fewColumns    = 5  // at least this many, even if they do not matter
	beforeDiverge = 3  // rows that are kept before the one where the schedule diverges
	afterDiverge  = 24 // rows that are kept after it
	beforeFail    = 8  // rows of an actor that are kept before it reports the failure
	mostSwitches  = 4  // switches that are kept, and rows on either side of each
	aroundSwitch  = 2
	mostFaults    = 15 // faults that have a row
	mostSaid      = 5  // faults whose next row is also kept
	mostLogged    = 10 // texts that the program logged, which are kept
	lateLogged    = 3  // texts whose actors have a column
)

// Table writes a column for each actor, and the steps in order from top to bottom, each with its line. A legend of the
// marks stands above the table. In a long table, repetitions are shown once, and rows far from the end, from the faults
// and from the last step of each actor are left out. If the columns do not fit into the width, it leaves out those with
// one row, and then those that matter least.
func (t *Trace) Table(b *strings.Builder) {
	without := map[int]bool{}
	c := t.layOut(b, mostColumns, without)
	if c == nil {
		return
	}
	guilty := t.guilty(c.all, c.diverges)
	needed := append(slices.Clone(guilty), c.rivals...)
	for c.room(goodWidth) < 0 {
		poor := slices.DeleteFunc(slices.Clone(c.shown), func(i int) bool {
			rows := 0
			c.each(func(_ int, s *chart.Step) {
				if s.Actor == i {
					rows++
				}
			})
			return rows > 1 || slices.Contains(needed, i)
		})
		if len(poor) == 0 {
			break
		}
		without[poor[0]] = true
		c = t.layOut(b, len(c.shown)-1, without)
	}
	for c.room(poorWidth) < 0 && len(c.shown) > max(1, len(guilty)) {
		c = t.layOut(b, len(c.shown)-1, without)
	}
	c.fit()
	if len(c.all) > MostRows && t.Long != nil {
		b.WriteString(t.Long())
	}
	c.legend()
	c.write()
}

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
	c.contested, c.rivals = t.rivals(all, c.diverges)
	c.shown = t.columns(all, c.diverges, c.rivals, most, without)
	for i := range all {
		if all[i].Waits {
			all[i].Text += " " + WaitMark
		}
		if all[i].Kind == chart.Fault || slices.Contains(c.shown, all[i].Actor) {
			c.rows = append(c.rows, chart.Row{Step: i})
		}
	}
	c.foldStart()
	if len(all) > MostRows || len(c.rows) < len(all) {
		c.thin()
	}
	used := map[int]bool{}
	c.each(func(_ int, s *chart.Step) { used[s.Actor] = true })
	c.shown = slices.DeleteFunc(c.shown, func(i int) bool { return !used[i] })
	c.measure()
	return c
}

// diverges returns the row at which the schedule diverges; -1 if there is none.
func (t *Trace) diverges(all []chart.Step) int {
	switch {
	case t.Twin != nil && t.Twin.Here < len(all):
		return t.Twin.Here
	case t.Twin == nil && t.Forked > 0:
		return slices.IndexFunc(all, func(s chart.Step) bool { return s.Number > t.Forked })
	}
	return -1
}

// Faults returns the steps that are faults, and their number. If there are more than most, it returns only the last
// ones before the failure.
func (t *Trace) Faults(most int) (all []int, n int) {
	before := 0
	for i := range t.Steps {
		if s := &t.Steps[i]; s.Kind == chart.Fault {
			if all = append(all, i); t.FailedAt == 0 || s.Number <= t.FailedAt {
				before++
			}
		}
	}
	n = len(all)
	end := min(max(before, most), n)
	return all[max(end-most, 0):end], n
}

// SayFaults writes which faults happened, and where. If there are many, it writes only the last ones before the
// failure.
func (t *Trace) SayFaults(b *strings.Builder) {
	all, n := t.Faults(mostSaid)
	if n == 0 {
		return
	}
	var texts []string
	for _, i := range all {
		s := &t.Steps[i]
		text := fmt.Sprintf("%s, in %s at step %d", strings.TrimPrefix(s.Text, "fault "), t.Of[s.Actor].Label(), s.Number)
		if at := Place(s.Title); at != "" {
			text += " (" + at + ")"
		}
		texts = append(texts, text)
	}
	if n > len(all) {
		texts = append(texts, fmt.Sprintf("and %d more", n-len(all)))
	}
	t.line(b, "faults: %s", strings.Join(texts, "; "))
}

// table is the table as it is written.
type table struct {
	*Trace
	*strings.Builder
	all      []chart.Step
	start    []chart.Row // the first rows, which are one line; nil: none
	rows     []chart.Row // the others
	diverges int         // the row where the schedule diverges; -1: none
	shown    []int       // actors that have a column

	contested []string // what the schedule and its twin both use where they diverge
	rivals    []int    // the actors that use that

	width  []int  // of the column of each actor
	number int    // width of the column of numbers
	file   string // of most lines
	place  int    // width of the column of lines, without those of other files
	timed  bool   // there are other times than 0
	right  int    // width of the text to the right of the columns
	least  []int  // the longest word of each column
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
	var switches []int
	before := 0
	for i := range c.all {
		switch s := &c.all[i]; {
		case s.Waits, s.Kind == chart.Said:
			keep[i] = true
		case s.Switches > 0:
			if switches = append(switches, i); i <= split {
				before++
			}
		}
	}
	from := max(before, mostSwitches) - mostSwitches
	for _, i := range switches[from:min(from+mostSwitches, len(switches))] { // the last ones before the divergence
		near(i, aroundSwitch, aroundSwitch)
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
	n := 0
	for n < len(c.rows) {
		s := &c.all[c.rows[n].Step]
		if c.rows[n].Step != n || !s.Starts || s.Waits || s.Switches > 0 || s.Actor != c.all[0].Actor || n == c.diverges {
			break
		}
		n++
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
	kept = chart.Thin(steps, kept, own, MostRows)
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
	var diverges, turns, cases, waits, arrow bool
	c.each(func(i int, s *chart.Step) {
		diverges = diverges || i == c.diverges
		turns = turns || i != c.diverges && s.Switches > 0 && !s.Takes
		cases = cases || i != c.diverges && s.Switches > 0 && s.Takes
		waits = waits || s.Waits
		arrow = arrow || strings.Contains(s.Text, " → ")
	})
	here := Sign{diverges, Mark, "diverges here from the schedule that passes"}
	if c.Forked > 0 {
		here.Meaning = "here the same decisions gave a different run"
	}
	Legend(c, c.Indent,
		Sign{turns, ">", "leaves the plain order: another " + c.one() + " gets the turn before this is done"},
		Sign{cases, ">", "leaves the plain order: another case would come first"},
		here, Sign{waits, WaitMark, "waits at the end"}, Sign{arrow, "→", "the result"})
}

// marked returns the number of a row with its mark: one > for each switch, or a mark that the schedule diverges.
func (c *table) marked(i int) string {
	number := ""
	if s := &c.all[i]; s.Number > 0 {
		number = strings.Repeat(">", s.Switches) + fmt.Sprint(s.Number)
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
		first, last := &c.all[0], &c.all[n-1]
		c.line(c.Builder, "... steps %d to %d: %s starts %s", first.Number, last.Number, c.Of[first.Actor].Label(),
			c.noun(c.starts(c.start)))
		next, gap.told = n, last.Number
	}
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
			c.skip(&gap, c.numberOf(gap.last))
			gap.told = max(gap.told, c.all[row.Last].Number)
			if !s.Inner || len(row.Steps) > 1 {
				c.line(c.Builder, "... %s: %s, until step %d", c.does(row.Steps), Times(row.Again), c.all[row.Last].Number)
			}
			continue
		case !slices.Contains(c.shown, s.Actor) && s.Kind == chart.Fault:
			c.skip(&gap, s.Number-1)
			gap.told = s.Number
			text := c.Of[s.Actor].Label() + " " + s.Text
			if at := Place(s.Title); at != "" {
				text += ", at " + at
			}
			c.line(c.Builder, "%*d | %s", c.number, s.Number, text)
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

// skip writes which steps are omitted, up to and including step to. These may include steps of calls that have a row
// above.
func (c *table) skip(g *gap, to int) {
	if g.left && to > g.told {
		what := fmt.Sprintf("steps %d to %d", g.told+1, to)
		if to == g.told+1 {
			what = fmt.Sprintf("step %d", to)
		}
		c.line(c.Builder, "... %s left out", what)
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

// guilty returns the actors that always have a column: those that fail, and those of the row where the schedule
// diverges.
func (t *Trace) guilty(all []chart.Step, diverges int) (actors []int) {
	actors = slices.Clone(t.Failing)
	if diverges >= 0 {
		actors = append(actors, all[diverges].Actor)
		if i := t.twinActor(); i >= 0 {
			actors = append(actors, i)
		}
	}
	slices.Sort(actors)
	return slices.Compact(actors)
}

// twinActor returns the actor of the twin's first different step, or -1 if the schedule has no such actor.
func (t *Trace) twinActor() int {
	if t.Twin == nil || t.Twin.There >= len(t.Twin.Steps) {
		return -1
	}
	name := t.Twin.Of[t.Twin.Steps[t.Twin.There].Actor].Name
	return slices.IndexFunc(t.Of, func(a chart.Actor) bool { return a.Name == name })
}

// logged returns the rows of the last texts that the program logged, at most most.
func logged(all []chart.Step, most int) (rows []int) {
	for i := len(all) - 1; i >= 0 && len(rows) < most; i-- {
		if all[i].Logged {
			rows = append(rows, i)
		}
	}
	return rows
}

// rivals returns what the schedule and its twin both use where they diverge, and the actors that use that, the nearest
// to the divergence first: a reader needs them to see why the order matters there.
func (t *Trace) rivals(all []chart.Step, diverges int) (contested []string, actors []int) {
	if t.Twin == nil || t.Twin.There >= len(t.Twin.Steps) || diverges < 0 {
		return nil, nil
	}
	contested = common(all[diverges:], t.Twin.Steps[t.Twin.There:])
	far := map[int]int{}
	for i := range all {
		if s := &all[i]; s.Uses(contested) {
			before, ok := far[s.Actor]
			if !ok {
				actors = append(actors, s.Actor)
			}
			if away := abs(i - diverges); !ok || away < before {
				far[s.Actor] = away
			}
		}
	}
	slices.SortStableFunc(actors, func(a, b int) int { return far[a] - far[b] })
	return contested, actors
}

func abs(n int) int { return max(n, -n) }

// columns chooses the actors that get a column, at most most, and none of those in without. Only actors with a row
// can have one. In this order it chooses: the actors that fail; those at the row where the schedule diverges; the
// rivals, which use what both schedules use there; the actor of the row before that; the actor of the last step before
// the failure; the namesakes of an actor that fails; those in which faults happened; those of the decisions in Decided;
// those that logged the last texts; of the actors that wait at the end, the last at each line; and those with steps
// that were cut short. Then it adds the other actors that wait, and others by their last step that has a text; if more
// than mostColumns actors have a row, it adds them only up to fewColumns.
func (t *Trace) columns(all []chart.Step, diverges int, rivals []int, most int, without map[int]bool) (actors []int) {
	acts, have, n := make([]bool, len(t.Of)), make([]bool, len(t.Of)), 0
	for i := range all {
		if !acts[all[i].Actor] {
			acts[all[i].Actor] = true
			n++
		}
	}
	add := func(i int) {
		if i >= 0 && i < len(acts) && acts[i] && !have[i] && !without[i] && len(actors) < most {
			have[i] = true
			actors = append(actors, i)
		}
	}
	for _, i := range t.Failing {
		add(i)
	}
	if diverges >= 0 {
		add(all[diverges].Actor)
		add(t.twinActor())
		for _, i := range rivals {
			add(i)
		}
		add(all[max(diverges-1, 0)].Actor)
	}
	end := len(all)
	if t.FailedAt > 0 {
		if i := slices.IndexFunc(all, func(s chart.Step) bool { return s.Number > t.FailedAt }); i >= 0 {
			end = i
		}
	}
	for i := end - 1; i >= 0; i-- {
		if all[i].Number > 0 {
			add(all[i].Actor)
			break
		}
	}
	var waiting []int
	for i := range t.Of {
		if t.Of[i].Why != "" {
			waiting = append(waiting, i)
		}
	}
	for _, i := range t.Failing {
		for _, k := range t.namesakes(i) {
			add(k)
		}
	}
	faults, _ := t.Faults(mostFaults)
	for _, i := range slices.Backward(faults) {
		add(t.Steps[i].Actor)
	}
	for _, i := range t.Decided {
		add(i)
	}
	for _, i := range logged(all, lateLogged) {
		add(all[i].Actor)
	}
	waiting = slices.DeleteFunc(waiting, func(i int) bool { return t.Of[i].Idle })
	slices.SortStableFunc(waiting, func(a, b int) int { return t.Of[b].Since - t.Of[a].Since })
	told := map[string]bool{}
	for _, i := range waiting {
		if since := t.Of[i].Since; since >= 0 && since < len(all) && !told[Place(all[since].Title)] {
			told[Place(all[since].Title)] = true
			add(i)
		}
	}
	for _, i := range t.Broken {
		if i < end {
			add(all[i].Actor)
		}
	}
	if n > mostColumns {
		most = min(most, max(fewColumns, len(actors)))
	}
	for _, i := range waiting {
		add(i)
	}
	for _, s := range slices.Backward(all[:end]) {
		if !s.Mute && !s.Timed && s.Number > 0 && !t.Of[s.Actor].Idle {
			add(s.Actor)
		}
	}
	for _, s := range slices.Backward(all) {
		if t.Width == 0 || !t.Of[s.Actor].Idle {
			add(s.Actor)
		}
	}
	slices.Sort(actors)
	return actors
}

// namesakes returns the actors that wait at the end and whose names differ from the name of an actor only in their
// number, if they are few: two actors that must not run at the same time often have one name.
func (t *Trace) namesakes(of int) (all []int) {
	const most = 2
	name, _, _, ok := numbered(t.Of[of].Label())
	for i := range t.Of {
		if head, _, _, _ := numbered(t.Of[i].Label()); ok && i != of && t.Of[i].Why != "" && head == name {
			all = append(all, i)
		}
	}
	if len(all) > most {
		return nil
	}
	return all
}
