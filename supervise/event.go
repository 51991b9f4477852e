package supervise

import (
	"cmp"
	"fmt"
	"time"
)

// Event is something that happened to a child.
type Event struct {
	Kind       Kind
	Supervisor string // its name, if it has one
	Child      string
	At         time.Duration // by the clock of the runtime: see coir.Now
	Err        error         // the cause, for KindFailed and KindGaveUp
	Restarts   int           // for KindRestarting: restarts within the period, including this one
	After      time.Duration // for KindRestarting: the wait before the restart
}

// Kind is the kind of an [Event].
type Kind uint8

// The kinds of events.
const (
	KindStarted    Kind = iota // it was started
	KindEnded                  // it returned nil
	KindFailed                 // it returned an error, panicked or called runtime.Goexit
	KindRestarting             // it will be restarted
	KindStopped                // the supervisor has stopped it
	KindGaveUp                 // it failed too often: the supervisor stops
)

func (k Kind) String() string {
	return word(int(k), "started", "ended", "failed", "restarting", "stopped", "gave up")
}

// String returns the event as a line of a log, without the stack of a panic.
func (e Event) String() string {
	s := e.Child + " " + e.Kind.String()
	if e.Supervisor != "" {
		s = e.Supervisor + ": " + s
	}
	switch {
	case e.Err != nil:
		s += ": " + firstLine(e.Err)
	case e.Kind == KindRestarting:
		s += fmt.Sprintf(" in %v, restart %d", e.After, e.Restarts)
	}
	return s
}

// GaveUpError is the error of a supervisor whose children failed too often.
type GaveUpError struct {
	Supervisor string        // its name, if it has one
	Child      string        // the child that failed last
	Restarts   int           // number of restarts
	Within     time.Duration // the period of those restarts
	Err        error         // the last failure; nil if the child ended without an error
}

// Error returns a text that names the child, the number of restarts, their period, and the last failure.
func (e *GaveUpError) Error() string {
	why := "ended without an error"
	if e.Err != nil {
		why = "failed: " + firstLine(e.Err)
	}
	return fmt.Sprintf("supervise: %s gave up after %s within %v: %s %s",
		cmp.Or(e.Supervisor, "the supervisor"), restarts(e.Restarts), e.Within, e.Child, why)
}

// Unwrap returns the error of the last failure.
func (e *GaveUpError) Unwrap() error { return e.Err }

func restarts(n int) string {
	if n == 1 {
		return "1 restart"
	}
	return fmt.Sprintf("%d restarts", n)
}
