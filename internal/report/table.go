package report

import (
	"fmt"
	"slices"
	"strings"

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
	mostTurns     = 12 // switches that are kept
	mostSwitches  = 4  // switches that are kept with rows on either side of each
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
	start    []chart.Row  // the first rows, which are one line; nil: none
	rows     []chart.Row  // the others
	turns    map[int]bool // the rows of switches that are kept
	ended    map[int]bool // the rows that closed or cancelled what other rows found closed or cancelled
	diverges int          // the row where the schedule diverges; -1: none
	shown    []int        // actors that have a column

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
