package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coir-go/coir/internal/chart"
)

const (
	twinRows   = 6  // of each schedule, from where they diverge
	twinOthers = 6  // more rows of each, of other actors that use the object on which they diverge
	twinWidth  = 62 // characters of each, if there is room
)

// Divergence describes where a failing schedule and its twin diverge. Why is empty if there is no twin.
type Divergence struct {
	Why           string // the decision, in words, with both ways; empty: there is no twin
	Changes       string // the first operations on one object in another order, if Why does not say that; or empty
	Fails, Passes Listing
	Verdict       string // how the schedule fails
	Later         int    // the number of steps from the divergence to the failure
	Own           bool   // the line of the first step of Fails is in the module of the user
	Tried         int    // the number of schedules tried
	Sure          bool   // no passing schedule has more in common; or no schedule passes
	Spared        bool   // schedules with more faults than the failing one were left out
	What          string // the word for what runs: program
	Decisions     int    // the number of decisions in the failing schedule
}

// SayDivergence writes where the schedule diverges from one that passes, unless that is unrelated to the failure.
func (t *Trace) SayDivergence(b *strings.Builder, p *Divergence) {
	if t.Unrelated() {
		return
	}
	if p.Why == "" {
		t.line(b, "%s", alone(p.What, p.Decisions, p.Tried, p.Sure))
		return
	}
	t.line(b, "diverges here: %s", p.Why)
	if p.Changes != "" {
		t.line(b, "therefore %s; in the schedule that passes, it is the other way round", p.Changes)
	}
	width := twinWidth + numberWidth
	if t.Width > 0 {
		width = min(width, (t.Width-len(t.Indent)-len("  ")-len(" | "))/2)
	}
	beside(b, t.Indent+"  ", p, width)
	t.line(b, "  %s", found(p))
}

// Twin returns the twin of a schedule in the form that a page needs. here and there are the rows at which the schedule
// and its twin diverge, and why describes the divergence. fails says how the schedule fails; it does so after the given
// number of steps. passes is the number of steps after which the twin passes.
func Twin(c *chart.Chart, here, there int, why, fails string, steps, passes int) *chart.Twin {
	ends := fmt.Sprintf("this schedule fails (%s) after %s; the other passes after %s", fails, Count(steps, "step"),
		chart.Grouped(passes))
	return &chart.Twin{Chart: c, Here: here, There: there, Why: why, Ends: ends}
}

// Listing holds steps and their actors.
type Listing struct {
	Of    []chart.Actor
	Steps []chart.Step
}

// beside writes the steps of a failing schedule and of its twin side by side, from where they diverge. Each line
// begins with indent. width is the width of each.
func beside(w io.Writer, indent string, p *Divergence, width int) {
	var contested []string
	if len(p.Fails.Steps) > 0 && len(p.Passes.Steps) > 0 {
		contested = common(p.Fails.Steps, p.Passes.Steps)
	}
	left := append([]string{"fails"}, p.Fails.lines(p.Verdict, contested, width)...)
	right := append([]string{"passes"}, p.Passes.lines("passes", contested, width)...)
	width = 0
	for _, text := range left {
		width = max(width, utf8.RuneCountInString(text))
	}
	for i := range max(len(left), len(right)) {
		a, b := "", ""
		if i < len(left) {
			a = left[i]
		}
		if i < len(right) {
			b = right[i]
		}
		text := a + strings.Repeat(" ", width-utf8.RuneCountInString(a)) + " | " + b
		fmt.Fprintf(w, "%s%s\n", indent, strings.TrimRight(text, " "))
	}
}

// numberWidth is the width of the number of a step, with the space after it.
const numberWidth = 8

// farAway is the number of steps after which a failure is far from the divergence.
const farAway = 50

// found returns a sentence about the search for the twin: how many schedules were tried, whether it is certain that no
// passing schedule has more in common, and how far away the failure is if it is far away.
//
// The bug is not always at the divergence: in a library, the two schedules may diverge because other actors run in
// another order, which only matters much later. A line of the user's own module is a decision of the user's program, so
// there the sentence does not leave that open.
func found(p *Divergence) string {
	without := ""
	if p.Spared {
		without = " without further faults"
	}
	text := fmt.Sprintf("of %s%s that were tried, this one passes and has the most in common",
		Count(p.Tried, "schedule"), without)
	if p.Sure {
		text = "no schedule" + without + " that passes has more in common with this one"
	}
	if p.Later > farAway {
		text += fmt.Sprintf("; the failure comes %s steps later", chart.Grouped(p.Later))
		if !p.Own {
			text += ", so the cause may be there, and not where the two diverge"
		}
	}
	return text
}

// alone returns a sentence which says that no twin was found, and how many schedules were tried. what names the
// program, and decisions is the number of its decisions. sure means that all schedules were tried.
func alone(what string, decisions, tried int, sure bool) string {
	switch {
	case decisions == 0:
		return "there was nothing to decide: the " + what + " fails in its only schedule"
	case sure:
		return fmt.Sprintf("the %s fails in all its %s", what, Count(tried+1, "schedule"))
	}
	return fmt.Sprintf("the %s also fails in %s; none that passes was found", what, Count(tried, "other schedule"))
}

// common returns what both of two schedules operate on where they diverge, which is at their first steps.
func common(a, b []chart.Step) (objects []string) {
	x, y := firstUse(a), firstUse(b)
	for _, name := range x.On {
		if y.Uses([]string{name}) {
			objects = append(objects, name)
		}
	}
	return objects
}

// firstUse returns the first step, or if that says little, such as the start of an actor, the next one of its actor
// that says more.
func firstUse(steps []chart.Step) *chart.Step {
	first := &steps[0]
	for i := range steps {
		if s := &steps[i]; s.Actor == first.Actor && !s.Mute {
			return s
		}
	}
	return first
}

// lines returns the first steps, each with its number and actor; then for each other actor that uses one of the
// contested objects the first step in which it does; and then how the schedule ends. Repeated waits for time are one
// line. A line has at most width characters.
func (l Listing) lines(end string, contested []string, width int) (all []string) {
	steps, before := l.Steps, len(Mark+"  ")
	if slices.ContainsFunc(steps, func(s chart.Step) bool { return s.Number > 0 }) {
		before = numberWidth
	}
	add := func(number, text string) {
		for k, line := range Wrap(text, width-before) {
			if k > 0 {
				number, line = "", "  "+line
			}
			all = append(all, fmt.Sprintf("%*s%s", before, number+"  ", line))
		}
	}
	rows, _ := chart.Rows(steps, func(i int) bool { return steps[i].Kind == chart.Said }, len(steps))
	shown, more := l.shown(rows, contested)
	for i, k := range shown {
		r := rows[k]
		s := &steps[r.Step]
		number, name := "", l.Of[s.Actor].Label()
		switch {
		case s.Number > 0:
			number = fmt.Sprint(s.Number)
		case i > 0 && k > shown[i-1]+1: // numbers show such a gap
			number = "..."
		}
		if k == 0 {
			number = Mark + number
		}
		if r.Again > 0 {
			add("...", name+" "+chart.Texts(steps, r.Steps)+": "+Times(r.Again))
			continue
		}
		add(number, said(name, s.Text)+placeIn(s.Title, name))
	}
	last := -1
	if len(shown) > 0 {
		last = shown[len(shown)-1]
	}
	switch {
	case more > 0:
		add("...", fmt.Sprintf("%s is also used by %d more", strings.Join(contested, ", "), more))
	case last < len(rows)-1:
		add("...", "")
	}
	if last < len(rows)-1 || last < 0 || steps[rows[last].Step].Text != end {
		add("", end)
	}
	return all
}

// said returns the line of a step: who takes it, and its text. A handler is called what its first step says.
func said(name, text string) string {
	if name == text || strings.HasPrefix(name, text+" (") {
		return name + " begins"
	}
	return name + " " + text
}

// shown returns the indexes of the rows to show, and how many actors without a row use a contested object.
func (l Listing) shown(rows []chart.Row, contested []string) (shown []int, more int) {
	first := len(rows)
	if first > twinRows+2 {
		first = twinRows
	}
	has := map[int]bool{}
	for k, r := range rows {
		s := &l.Steps[r.Step]
		other := !has[s.Actor] && r.Again == 0 && s.Uses(contested)
		switch {
		case k < first:
			shown = append(shown, k)
		case other && len(shown) < first+twinOthers:
			shown = append(shown, k)
		case other:
			more++
		}
		has[s.Actor] = has[s.Actor] || other
	}
	return shown, more
}

// placeIn returns ", at file:line" for the place that a title starts with, or nothing. If the name of the actor begins
// with the file, it is left out.
func placeIn(title, name string) string {
	place := Place(title)
	if place == "" {
		return ""
	}
	short := ShortPlace(place, "")
	if file, line := cutLine(short); strings.HasPrefix(name, file+":") {
		short = line
	}
	return ", at " + short
}

// Mark marks the step at which a schedule diverges from its twin.
const Mark = "=>"

// Times returns in words how often something is repeated.
func Times(again int) string {
	switch again {
	case 1:
		return "once more"
	case 2:
		return "twice more"
	}
	return chart.Grouped(again) + " times more"
}
