package coir

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The errors of operations. Each kind of error is a type that records the operation, and the object if it has a name.
// The texts have the form "coir: send on jobs: timed out".

// ErrClosed is returned by operations on a closed channel, and by [Runtime.Run] on a closed runtime. Test for it with
// errors.Is: the returned error also names the channel and the cause given to [Chan.Abort].
var ErrClosed error = &closedError{}

// ErrWouldBlock is returned by a Try operation that would have blocked, and by a send on a full channel with
// [WithOverflow]([OverflowFail]). Test for it with errors.Is.
var ErrWouldBlock error = &wouldBlockError{}

// ErrTimeout is returned by an operation that ran out of time: its own limit, or the deadline of its context. Test for
// it with errors.Is. It is also context.DeadlineExceeded, and a net.Error whose Timeout method returns true.
var ErrTimeout error = &timeoutError{}

// ErrGoexit is returned by [Fiber.Wait] for a fiber that ended by runtime.Goexit, which t.FailNow calls.
var ErrGoexit = errors.New("coir: the fiber ended by runtime.Goexit")

// opText returns the text of an error. op is empty if the object of the operation has no name; cause may be nil.
func opText(op, what string, cause error) string {
	var b strings.Builder
	b.WriteString("coir: ")
	if op != "" {
		b.WriteString(op)
		b.WriteString(": ")
	}
	b.WriteString(what)
	if cause != nil {
		b.WriteString(": ")
		b.WriteString(causeText(cause))
	}
	return b.String()
}

// causeText returns the text of a cause. It omits the stack of a panic, which is printed with the panic itself.
func causeText(cause error) string {
	text := cause.Error()
	if pe := (*PanicError)(nil); errors.As(cause, &pe) {
		text, _, _ = strings.Cut(text, "\n")
	}
	return text
}

// closedError is an ErrClosed with details.
type closedError struct {
	op    string
	cause error // the cause given to Abort
	how   closing
}

// closing tells how a channel or a runtime was closed.
type closing uint8

const (
	byClose   closing = iota // a channel
	byAbort                  // a channel
	ofRuntime                // a runtime
)

func (e *closedError) Error() string {
	switch e.how {
	case byAbort:
		return opText(e.op, "channel was aborted", e.cause)
	case ofRuntime:
		return opText(e.op, "runtime is closed", nil)
	}
	return opText(e.op, "channel is closed", nil)
}

func (e *closedError) Is(target error) bool { return target == ErrClosed }

// Unwrap returns the cause given to Abort, unless the cause is one of the errors that operations return: a channel that
// was aborted because of a timeout has been closed, not timed out.
func (e *closedError) Unwrap() error {
	for _, how := range []error{ErrTimeout, ErrWouldBlock, ErrClosed, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(e.cause, how) {
			return nil
		}
	}
	return e.cause
}

// wouldBlockError is an ErrWouldBlock of a channel that has a name.
type wouldBlockError struct{ op string }

func (e *wouldBlockError) Error() string { return opText(e.op, "would block", nil) }

func (e *wouldBlockError) Is(target error) bool { return target == ErrWouldBlock }

// timeoutError is an ErrTimeout with details. The cause is the one given to context.WithTimeoutCause.
type timeoutError struct {
	op    string
	cause error
}

func (e *timeoutError) Error() string { return opText(e.op, "timed out", e.cause) }

// Timeout and Temporary implement net.Error. They return what those of context.DeadlineExceeded return.
func (e *timeoutError) Timeout() bool   { return true }
func (e *timeoutError) Temporary() bool { return true }

func (e *timeoutError) Is(target error) bool {
	return target == ErrTimeout || target == context.DeadlineExceeded
}

// canceledError is the error of an operation in a scope that was cancelled. The text includes the cause, but the error
// does not wrap it, because the cause belongs to another operation. context.Cause returns the cause.
type canceledError struct {
	op    string
	cause error
}

func (e *canceledError) Error() string { return opText(e.op, "cancelled", e.cause) }

func (e *canceledError) Is(target error) bool { return target == context.Canceled }

// on returns the error of an operation that ended because of e. op names the operation, or is empty.
func (e *ending) on(op string) error {
	switch {
	case op == "":
		return e.op
	case e.err == context.DeadlineExceeded:
		return &timeoutError{op, e.cause}
	}
	return &canceledError{op, e.cause}
}

// PanicError is the value with which [Run] panics when its function or a fiber has panicked.
type PanicError struct {
	Fiber string // the fiber's name
	Value any    // the value passed to panic
	Stack []byte // the fiber's stack when it panicked

	// Also joins the other failures in the nursery, panics and errors. It is nil if there were none.
	Also error
}

// panicError returns the *PanicError for a panic of f with value v. If v is already a *PanicError, from an inner
// nursery, panicError returns v, because its stack shows where the panic began.
func panicError(f *Fiber, v any, stack []byte) *PanicError {
	if pe, ok := v.(*PanicError); ok && pe != nil {
		return pe
	}
	return &PanicError{Fiber: f.Name(), Value: v, Stack: stack}
}

// with returns a copy of e with more failures added. It does not change e, which others may be using.
func (e *PanicError) with(more []error) *PanicError {
	if len(more) == 0 {
		return e
	}
	all := *e
	if e.Also != nil {
		more = slices.Insert(more, 0, e.Also)
	}
	all.Also = joined(more)
	return &all
}

// Error returns the panic, its stack, and the other failures.
func (e *PanicError) Error() string {
	s := fmt.Sprintf("coir: panic in fiber %s: %v\n\n%s", e.Fiber, e.Value, e.Stack)
	if e.Also != nil {
		s += "\nalso failed: " + e.Also.Error()
	}
	return s
}

// Unwrap returns the panic's value, if that is an error, and Also.
func (e *PanicError) Unwrap() []error {
	var errs []error
	if err, ok := e.Value.(error); ok && e.Value != any((*PanicError)(nil)) {
		errs = append(errs, err)
	}
	if e.Also != nil {
		errs = append(errs, e.Also)
	}
	return errs
}
