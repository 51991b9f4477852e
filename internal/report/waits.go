package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coir-go/coir/internal/chart"
)

// This file reports what each actor waits for at the end. graph.go explains why no actor can end these waits.

const (
	mostWaits   = 20 // lines about waits
	mostWishes  = 8  // cases of a select
	mostHolders = 3  // holders of an object
)

// Wait is an actor that waits at the end, or never ends for another reason.
type Wait struct {
	Actor  int
	Does   string // what it does: waits, waits in a select, sleeps
	Wishes []Wish // what it waits for; each of them would end the wait
	At     string // the place: jobs.go:12; empty: unknown
	Same   string // waits with the same key are reported together; empty: the wait is reported alone
	Ticks  bool   // whether it only waits for time repeatedly, and gets no line
}

// Wish is something that an actor waits for.
type Wish struct {
	chart.Use        // the use that it waits for, with the object's number in Events
	Text      string // the wish in words that follow "waits": to send to jobs
	Name      string // the name of the object
	Ends      string // what an actor does to the object to end the wait, such as "receive from"; empty: unknown
	Note      string // what else happened to the object, such as "was closed at step 7"
	Of        []int  // if it is the end of actors: these actors
	How       string // if the object is held: the words before the holders, such as "held by"
	By        []Hold // the holders, the oldest first
	Any       bool   // whether each holder alone could end the wait
	Timed     bool   // whether it waits for time to pass
}

// Hold is an object that an actor holds.
type Hold struct {
	Actor int
	Step  int    // the number of the step at which it took the object; 0: not said
	At    string // the place where it took the object; empty: not known
}

// Need says what an actor does at the end, and which other actors hold what it waits for.
func (t *Trace) Need(w *Wait) string {
	text := w.Does
	for k := range w.Wishes {
		x := &w.Wishes[k]
		if k > 0 {
			text += ", or"
		}
		if k == mostWishes {
			return text + " " + Count(len(w.Wishes)-k, "more case")
		}
		if x.Text != "" {
			text += " " + x.Text
		}
		text += t.held(w.Actor, x)
	}
	return text
}

// Line says what an actor does at the end, and where.
func (t *Trace) Line(w *Wait) string {
	if w.At == "" {
		return t.Need(w)
	}
	return t.Need(w) + ", at " + w.At
}

// held says which actors hold what an actor waits for, in words that follow others.
func (t *Trace) held(actor int, x *Wish) string {
	if x.How == "" {
		return ""
	}
	if len(x.By) == 0 {
		return ", which no " + t.one() + " holds"
	}
	var texts []string
	for k, h := range x.By[:min(len(x.By), mostHolders)] {
		text := t.Of[h.Actor].Name
		switch {
		case h.Actor == actor:
			text = "itself"
		case t.Of[h.Actor].Ended:
			text += ", which has ended,"
		}
		if h.Step > 0 {
			text += fmt.Sprintf(" since step %d", h.Step)
		}
		last := k == len(x.By)-1 || k == mostHolders-1
		if h.At != "" && (last || h.At != x.By[k+1].At) {
			text += " (at " + h.At + ")"
		}
		texts = append(texts, text)
	}
	text := ", " + x.How + " " + strings.Join(texts, ", ")
	if more := len(x.By) - mostHolders; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// SayWaits writes what actors wait for. Actors that wait for the same thing share a line. more returns the text to add
// to such a line.
func (t *Trace) SayWaits(b *strings.Builder, more func(same []Wait) string) {
	all := slices.DeleteFunc(slices.Clone(t.Waiting), func(w Wait) bool { return w.Ticks })
	crowds, width, left := Crowds(all, func(w Wait) string { return w.Same }), 0, len(all)
	for _, who := range crowds[:min(len(crowds), mostWaits)] {
		if t.Align && len(who) == 1 {
			width = max(width, len(t.Of[who[0].Actor].Name))
		}
	}
	for k, who := range crowds {
		line := t.Line(&who[0])
		switch {
		case k == mostWaits:
			t.line(b, "... and %s more", t.noun(left))
			return
		case len(who) == 1:
			t.line(b, "%-*s %s%s", width, t.Of[who[0].Actor].Name, line, more(who))
		case slices.ContainsFunc(who, func(w Wait) bool { return t.Line(&w) != line }):
			t.line(b, "%s wait at %s%s; the first %s", t.names(who), who[0].At, more(who), t.Need(&who[0]))
		default:
			t.line(b, "%s %s%s", t.names(who), plural(line), more(who))
		}
		left -= len(who)
	}
}

// plural changes a text about one actor to one about several: "waits to lock mu" to "wait to lock mu".
func plural(text string) string { return "wait" + strings.TrimPrefix(text, "waits") }

// names lists the names of the actors of some waits.
func (t *Trace) names(all []Wait) string {
	actors := make([]int, len(all))
	for k, w := range all {
		actors[k] = w.Actor
	}
	return t.List(actors)
}

// List lists the names of actors.
func (t *Trace) List(actors []int) string {
	names := make([]string, len(actors))
	for k, i := range actors {
		names[k] = t.Of[i].Name
	}
	return Names(names, 8)
}
