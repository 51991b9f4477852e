package main

import (
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// result is what became of a test.
type result struct {
	test    string
	outcome string // pass, fail, skip, uncontrolled, long, stateful, again, error, died
	elapsed time.Duration
	output  string // of the process
	shown   string // of the schedule that is told
	broken  string // what coir could not do

	timedOut bool // it did not end within -timeout

	schedules int
	left      int // schedules that left goroutines behind

	failure *failure
	stepsOf []step
	actors  map[int]*actor
	log     string   // of the test, in the schedule that is told
	token   string   // of a failure that is to be run again in another process
	found   int      // the schedule in which it was
	stacks  []string // of those who wait in the kernel, if the test is not controlled
	waitsIn int      // 1 a system call, 2 something outside, 3 it computes, and so on; see notControlled
}

// dependsOnOthers reports whether a test may have failed for what other tests did at the same time: it needs no special
// schedule to fail, and what it says is not about its goroutines alone.
func (r *result) dependsOnOthers() bool {
	return r.outcome == "died" || r.outcome == "fail" && r.failure.switches == 0 &&
		(r.failure.kind == "fail" || r.failure.kind == "panic")
}

// failure is a schedule that failed.
type failure struct {
	kind, text string
	schedule   int // in which it was found
	seed       uint64
	switches   int
	token      string
	stable     bool // it failed again, in the same way
	outside    int
	panicked   int // the goroutine that did
	replayed   bool
}

// step is what a goroutine was about to do.
type step struct {
	n, g, object int
	op           int
	at           time.Duration
	place        place
	way, ways    int // of the decision that led here, if it was not the first way
	times        int // how often, if it is one of several that are the same
}

// place is a line of the program.
type place struct {
	file     string
	line     int
	function string
}

// actor is a goroutine.
type actor struct {
	id, parent int
	op         int // its last point
	state      int
	reason     string
	object     int
	step       int
	since      time.Duration
	made, at   place
}

// States of an actor.
const (
	ready = iota
	waiting
	ended
)

// read reads a record, whose lines are written by package testing of the overlay.
func (r *result) read(text string) {
	r.actors = map[int]*actor{}
	for line := range strings.Lines(text) {
		f := &fields{in: strings.Split(strings.TrimSuffix(line, "\n"), "\t")}
		switch f.text() {
		case "summary":
			r.outcome = f.quoted()
			r.schedules, r.left = f.int(), f.int()
		case "failure":
			r.failure = &failure{
				kind: f.quoted(), text: f.quoted(), schedule: f.int(), seed: uint64(f.int()), switches: f.int(),
				token: f.quoted(), stable: f.text() == "true", outside: f.int(), panicked: f.int(),
			}
		case "step":
			r.stepsOf = append(r.stepsOf, step{
				n: f.int(), g: f.int(), op: f.int(), object: f.int(), at: time.Duration(f.int()),
				place: f.place(), way: f.int(), ways: f.int(),
			})
		case "actor":
			a := &actor{
				id: f.int(), parent: f.int(), op: f.int(), state: f.int(), reason: f.quoted(), object: f.int(),
				step: f.int(), since: time.Duration(f.int()), made: f.place(), at: f.place(),
			}
			r.actors[a.id] = a
		case "output":
			r.log = f.quoted()
		case "stack":
			r.stacks = append(r.stacks, f.quoted())
		case "uncontrolled":
			r.waitsIn = f.int()
		case "again":
			r.token, r.found = f.quoted(), f.int()
		case "error":
			r.broken = f.quoted()
		}
		if f.bad != nil {
			r.broken = fmt.Sprintf("the record has a bad line %q: %v", line, f.bad)
		}
	}
}

// fields are those of a line.
type fields struct {
	in  []string
	bad error
}

func (f *fields) text() string {
	if len(f.in) == 0 {
		f.bad = errors.New("it is too short")
		return ""
	}
	s := f.in[0]
	f.in = f.in[1:]
	return s
}

func (f *fields) int() int {
	n, err := strconv.Atoi(f.text())
	if err != nil && f.bad == nil {
		f.bad = err
	}
	return n
}

func (f *fields) quoted() string {
	s, err := strconv.Unquote(f.text())
	if err != nil && f.bad == nil {
		f.bad = err
	}
	return s
}

func (f *fields) place() place { return place{f.quoted(), f.int(), f.quoted()} }

// died is told how a process ended that has left no summary.
func (r *result) died(err error) {
	r.outcome = "died"
	var exit *exec.ExitError
	switch {
	case strings.Contains(r.output, "panic: test timed out"):
		r.broken, r.timedOut = "it did not end within -timeout", true
	case strings.Contains(r.output, "fatal error:"):
		r.broken = "the Go runtime ended the process. If the test does not do so under go test, that is a fault of " +
			"coir test: report it with the output below, and with what `go version` says"
	case err == nil:
		r.broken = "the process ended, with success, before the test did: does it call os.Exit?"
	case errors.As(err, &exit):
		r.broken = "the process ended before the test did: " + exit.String() + "; does it call os.Exit?"
	default:
		r.broken = err.Error()
	}
}
