// Package chart writes a schedule as a page to work in: actors from left to right, their steps from top to bottom, arrows
// from each send to the receive that got the value, and the state of every actor and object at the chosen step. It knows
// actors and steps, and not what they are: package sim draws fibers with it, and `coir test` goroutines.
//
// A page is one HTML file that needs nothing else, because it is opened from the disk of a build machine or out of a
// mail.
package chart

import (
	"fmt"
	"strings"
	"time"
)

// Chart is what is drawn.
type Chart struct {
	Title   string // what happened, in a line
	Text    string // who waits for what
	Verdict string // at the end of the drawing
	Notes   string // below the text
	Replay  string // how to see it again
	Actors  string // what the actors are called: fibers

	Before  int // steps that came before these, and are not known
	Of      []Actor
	Objects []Object
	Steps   []Step
	Starts  []Start
	Arrows  []Arrow
	Cycle   []int // actors each of which waits for the next, and the last for the first
	Twin    *Twin // a schedule that passed; nil: none is known
}

// Twin is a schedule that passed. It has the first steps in common with the schedule of the chart, and then one
// decision led it another way.
type Twin struct {
	*Chart        // actors that both schedules have started have the same place
	There  int    // the first of its Steps that is not in common; len(Steps) if the twin has no more
	Here   int    // and of the failure's Steps
	Why    string // the decision, in words, with both ways
	Ends   string // how both end
}

// Actor is a column.
type Actor struct {
	Name  string
	Short string // its name where there is little room; empty: Name
	Title string // is shown when the mouse is on it
	Ended bool
	Why   string // if it waits at the end, or has failed: for what
	Since int    // the step since when; negative if that is not among Steps
}

// Label returns the name of the actor where there is little room.
func (a *Actor) Label() string {
	if a.Short != "" {
		return a.Short
	}
	return a.Name
}

// Object is a channel, a lock or the like.
type Object struct {
	Name string
	Sort string // channel, lock
	Made string // where it was made
	Room int    // how many values a channel holds; negative if that is not known
}

// Step is a row.
type Step struct {
	Actor  int
	Number int
	Kind   Kind
	Text   string
	Title  string
	At     time.Duration
	Switch string // if the schedule departs here from the plain order: how
	Timed  bool   // it waits for a time

	Switches int  // in how many decisions it departs
	Takes    bool // the last of them is which case a select takes
	Inner    bool // it is a part of a call, and how many such parts there are does not matter
	Mute     bool // it says little about what the actor does, as its start
	Waits    bool // the actor waits in it at the end

	// If the actor waited in it: the step that ended the wait, or len(Steps) if none did. Else 0.
	Until int
	Did   []Use // what it did to objects
	Wants []Use // if it waited: what for
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
	Touch   Effect = iota // not in a way that is known
	Put                   // values into a channel
	Get                   // values out of it
	Shut                  // closes it
	Hold                  // takes a lock
	Release               // gives it back
)

// Kind is what a step is about. It decides its color.
type Kind int

// Kinds of steps.
const (
	Plain   Kind = iota
	Channel      // it could be seen at the other side of a channel
	Lock
	Fault // it was not the program that did it
	Said  // no step: a text of the program, with the number 0
)

// Start says which step has started an actor.
type Start struct{ Step, Actor int }

// Arrow leads from a step to the one that it has let go on. It ends at the later of both: if that which goes on was
// first, at its column, in the row of the step that ends its wait.
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

// Grouped returns a number with a comma before each three digits.
func Grouped(n int) string {
	s := fmt.Sprint(n)
	for at := len(s) - 3; at > 0; at -= 3 {
		s = s[:at] + "," + s[at:]
	}
	return s
}

// Texts returns what some steps are, in a line.
func Texts(steps []Step, which []int) string {
	var texts []string
	for _, i := range which {
		texts = append(texts, steps[i].Text)
	}
	return strings.Join(texts, ", ")
}
