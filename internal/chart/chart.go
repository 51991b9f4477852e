// Package chart writes a schedule as an interactive page: actors from left to right, their steps from top to bottom,
// arrows from each send to the receive that got the value, and the state of every actor and object at the chosen step.
// Package sim uses it to draw fibers, and `coir test` to draw goroutines; both are actors here.
//
// A page is one HTML file that loads no other file, because readers open it from the disk of a build machine or from an
// attachment of a mail.
package chart

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Chart is a schedule to draw.
type Chart struct {
	Title   string // what happened, in a line
	Text    string // who waits for what
	Verdict string // at the end of the drawing
	Notes   string // below the text
	Replay  string // the command that replays it
	Actors  string // the word for the actors, such as fibers

	Before  int // the number of earlier steps, which were not recorded
	Of      []Actor
	Objects []Object
	Steps   []Step
	Starts  []Start
	Arrows  []Arrow
	Cycle   []int // actors that each wait for the next one, and the last for the first
	Twin    *Twin // a schedule that passed; nil if none is known
}

// Twin is a schedule that passed. Its first steps are those of the schedule of the chart; then one decision differs.
type Twin struct {
	*Chart        // an actor that both schedules start has the same name in both
	There  int    // the index of the first step in the twin's Steps that differs; len(Steps) if there is none
	Here   int    // the same for the Steps of the failure
	Why    string // describes the decision, and what each schedule chose
	Ends   string // how both end
}

// Actor is a column.
type Actor struct {
	Name  string
	Short string // its name if there is little room; if empty, Name
	Title string // the tooltip
	Ended bool
	Why   string // what it waits for at the end, or how it failed; or empty
	Since int    // the step at which that began; negative if it is not among Steps

	Idle    bool // waits at the end as it always does, such as a server for clients
	Request bool // not a goroutine, but a request that a goroutine served before it was the next actor
}

// Label returns the name of the actor for places with little room.
func (a *Actor) Label() string {
	if a.Short != "" {
		return a.Short
	}
	return a.Name
}

// Object is a channel, a lock or a similar object.
type Object struct {
	Name string
	Sort string // channel, lock
	Made string // where it was made
	Room int    // how many values a channel holds; negative if unknown
}

// Step is a row.
type Step struct {
	Actor  int
	Number int
	Kind   Kind
	Text   string
	Title  string
	At     time.Duration
	Switch string // how the schedule departs here from the plain order; empty if it does not
	Timed  bool   // the step waits for a time

	Switches int  // the number of decisions at this step that depart from the plain order
	Takes    bool // the last of them chooses the case of a select
	Passes   bool // the last of them lets time pass
	Inner    bool // a part of a call; the number of such parts does not matter
	Mute     bool // says little about what the actor does, such as its start
	Waits    bool // the actor waits in it at the end
	Starts   bool // it starts an actor or a server, or belongs to such a start
	Logged   bool // not a step but a text that the program logged, with the number 0; there may be many
	Missed   bool // a signal that an actor that waits at the end may have missed
	Aside    bool // inside of a library; a text leaves it out, unless it decides something

	// Until is the step that ended the wait of the actor in this step, or len(Steps) if the wait did not end. It is 0
	// if the actor did not wait.
	Until int
	Did   []Use // its effects on objects
	Wants []Use // what it waited for

	On []string // the names of what it operates on, also of what is not among Objects; for a select, those of all cases
}

// Uses reports whether the step operates on one of some objects.
func (s *Step) Uses(objects []string) bool {
	return slices.ContainsFunc(objects, func(name string) bool { return slices.Contains(s.On, name) })
}

// Use is what a step does to an object.
type Use struct {
	Object int
	What   Effect
	N      int // how much of it
}

// Effect is how a use changes an object.
type Effect int

// Effects of uses.
const (
	Touch   Effect = iota // unknown
	Put                   // puts values into a channel
	Get                   // gets values out of it
	Shut                  // closes it
	Hold                  // takes a lock
	Release               // gives it back
)

// Kind is the kind of a step. It determines the step's colour.
type Kind int

// Kinds of steps.
const (
	Plain   Kind = iota
	Channel      // an operation on a channel
	Lock
	Fault // injected, not an operation of the program
	Said  // not a step but a text of the program, with the number 0
)

// Start is a step that started an actor.
type Start struct{ Step, Actor int }

// Arrow leads from a step to the step whose wait it ended. It ends in the row of the later of the two, in the column of
// the step that waited.
type Arrow struct {
	From, To int
	Kind     Relation
	Text     string // of the object
	Guess    bool
}

// Relation is what an arrow stands for.
type Relation int

// Kinds of arrows.
const (
	Message  Relation = iota // a value
	Closing                  // a close, and a receive that found it
	HandOver                 // an unlock, and the lock after it
	Wake                     // a signal, or the last Done
)

// Grouped returns a number with a comma before each group of three digits.
func Grouped(n int) string {
	s := fmt.Sprint(n)
	for at := len(s) - 3; at > 0; at -= 3 {
		s = s[:at] + "," + s[at:]
	}
	return s
}

// Texts returns the texts of some steps, in a line.
func Texts(steps []Step, which []int) string {
	var texts []string
	for _, i := range which {
		texts = append(texts, steps[i].Text)
	}
	return strings.Join(texts, ", ")
}
