// Package report writes a failed schedule as text: what each waiting actor waits for, where the schedule diverges from
// a passing one, and its steps, with a column for each actor that matters. The package does not know what actors and
// objects are: package sim fills a [Trace] with fibers, `coir test` with goroutines. Package chart draws the same trace
// as a page.
package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coir-go/coir/internal/chart"
)

// Trace is a failed schedule. The exported fields are what is known about it; the methods find out the rest.
type Trace struct {
	*chart.Chart

	Waiting  []Wait                  // the actors that wait at the end, in order
	Events   []Event                 // the operations on objects, including those without a row
	Complete bool                    // whether Events contains all of them
	Hidden   []bool                  // the actors with operations that Events does not show; nil: none
	Outside  bool                    // whether anything other than an actor also used objects
	Named    func(object int) string // the name of an object of Events
	Align    bool                    // whether what actors wait for stands in one column
	Indent   string                  // the indentation of each line
	Width    int                     // the most characters of a line of a table; 0: unlimited
	Total    int                     // the number of the last step that matters, with which the table ends
	FailedAt int                     // the number of the step at which the schedule fails; 0: it never ends
	Failing  []int                   // the actors that fail, beginning with the first
	Stuck    bool                    // it fails because actors wait that nothing will wake
	Decided  []int                   // the actors of the decisions that matter, beginning with the last
	Broken   []int                   // the steps that were cut short, so that a value may be lost; the most relevant first
	Ended    map[int]int             // the row that cancelled what a row found cancelled
	Forked   int                     // the number of the step after which the same decisions had another result; 0: none
	Done     bool                    // a step is an operation that was performed, not one that is about to be
	Inside   string                  // what steps without a row are, in words that follow "are"; empty: not said
	Exact    time.Duration           // the unit to which times are rounded; 0: times are not rounded
	Long     func() string           // the text above a long table; nil: none

	facts
}

// facts are what methods of a Trace have found out, and keep for later calls.
type facts struct {
	users    map[int][]user // the users of objects; nil: not known yet
	waits    []*Wait        // the waits of actors; nil: not known yet
	searched bool           // whether the cycle was searched
	way      []Edge         // the edges of the cycle
	flows    map[int]*flow  // the flows of channels; nil: not known yet
	flowing  []*flow        // the same, in order
	ends     map[int]int    // see endings; nil: not known yet
}

// one returns the word for one actor: fiber.
func (t *Trace) one() string { return strings.TrimSuffix(t.Actors, "s") }

// noun returns the words for n actors: 3 fibers.
func (t *Trace) noun(n int) string { return Count(n, t.one()) }

// Count returns a number of things in words: 1 step, 1,200 steps.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return chart.Grouped(n) + " " + what + "s"
}

// line writes a line.
func (t *Trace) line(b *strings.Builder, format string, args ...any) {
	b.WriteString(t.Indent)
	fmt.Fprintf(b, format+"\n", args...)
}

// SayWho writes which of many actors reports the failure, and which waiting actors have the same name. If there are few
// actors, the table shows this.
func (t *Trace) SayWho(b *strings.Builder) {
	if len(t.Failing) == 0 || len(t.Of) <= mostColumns {
		return
	}
	who := t.Failing[0]
	said := slices.IndexFunc(t.Steps, func(s chart.Step) bool { return s.Actor == who && s.Kind == chart.Said })
	if said < 0 {
		return
	}
	text := t.lineage(who) + " says so"
	if at := Place(t.Steps[said].Title); at != "" {
		text += ", at " + at
	}
	t.line(b, "%s", text)
	for _, i := range t.namesakes(who) {
		t.line(b, "%s has the same name, and %s", t.lineage(i), t.Of[i].Why)
	}
}

// lineage returns the names of an actor and of its known ancestors, without the first actor: led#7 of lead#3 of one.
func (t *Trace) lineage(actor int) string {
	parent := map[int]int{}
	for _, s := range t.Starts {
		if s.Step >= 0 && s.Step < len(t.Steps) {
			parent[s.Actor] = t.Steps[s.Step].Actor
		}
	}
	text := t.Of[actor].Name
	for up, ok := parent[actor]; ok && up > 0; up, ok = parent[up] {
		text += " of " + t.Of[up].Name
	}
	return text
}
