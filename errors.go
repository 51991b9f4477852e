package coir

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The errors of operations. Each kind is a type that says what happened, and on which object if that has a name. Their texts
// have the form "coir: send on jobs: timed out".

// ErrClosed is returned by operations on a closed channel, and by [Runtime.Run] on a closed runtime. Compare with
// errors.Is: the error itself also says which channel it was, and the cause that [Chan.Abort] was given.
var ErrClosed error = &closedError{}

// ErrWouldBlock is returned by a Try operation that would have blocked, and by a send on a full channel with
// [Overflow]([Fail]). Compare with errors.Is.
var ErrWouldBlock error = &wouldBlockError{}

// ErrTimeout is returned by an operation that ran out of time: its own limit, or the deadline of its context. Compare with
// errors.Is. It is also a context.DeadlineExceeded, and a net.Error whose Timeout is true.
var ErrTimeout error = &timeoutError{}

// ErrGoexit is what [Fiber.Wait] returns for a fiber that ended by runtime.Goexit, as t.FailNow does.
var ErrGoexit = errors.New("coir: the fiber ended by runtime.Goexit")

// opText puts the text of an error together. op is empty if the operation or its object has no name, cause may be nil.
func opText(op, what string, cause error) string {
	var b strings.Builder
	b.WriteString("coir: ")
	if op != "" {
		b.WriteString(op)
		b.WriteString(": ")
	}
	b.WriteString(what)
	if cause != nil {
		text := cause.Error()
		if pe := (*PanicError)(nil); errors.As(cause, &pe) {
			text, _, _ = strings.Cut(text, "\n") // the stack comes with the panic itself
		}
		b.WriteString(": ")
		b.WriteString(text)
	}
	return b.String()
}

// closedError is an ErrClosed with what is known about it.
type closedError struct {
	op    string
	cause error // given to Abort
	abort bool
}

func (e *closedError) Error() string {
	if e.abort {
		return opText(e.op, "channel was aborted", e.cause)
	}
	return opText(e.op, "channel is closed", nil)
}

func (e *closedError) Is(target error) bool { return target == ErrClosed }

// Unwrap returns the cause given to Abort, unless that says how some other operation ended: an aborted channel is no timeout,
// even if a timeout was the reason to abort it.
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

// timeoutError is an ErrTimeout with what is known about it. The cause is that of context.WithTimeoutCause.
type timeoutError struct {
	op    string
	cause error
}

func (e *timeoutError) Error() string { return opText(e.op, "timed out", e.cause) }

// Timeout and Temporary make it a net.Error. They say what those of context.DeadlineExceeded do.
func (e *timeoutError) Timeout() bool   { return true }
func (e *timeoutError) Temporary() bool { return true }

func (e *timeoutError) Is(target error) bool {
	return target == ErrTimeout || target == context.DeadlineExceeded
}

// canceledError is the error of an operation in a scope that was cancelled. The cause is shown and not wrapped: what ended another
// operation has not ended this one. context.Cause has it.
type canceledError struct {
	op    string
	cause error
}

func (e *canceledError) Error() string { return opText(e.op, "cancelled", e.cause) }

func (e *canceledError) Is(target error) bool { return target == context.Canceled }

// on returns the error of an operation that e ended. op says which operation it was, if there is a name to tell.
func (e *ending) on(op string) error {
	switch {
	case op == "":
		return e.op
	case e.err == context.DeadlineExceeded:
		return &timeoutError{op, e.cause}
	}
	return &canceledError{op, e.cause}
}

// PanicError is what [Run] panics with when its function or a fiber has panicked.
type PanicError struct {
	Fiber string // the fiber's name
	Value any    // what it panicked with
	Stack []byte // its stack at that moment

	// Also joins what else has failed in the nursery: other panics, and errors. It is nil if nothing has.
	Also error
}

// panicError returns the *PanicError for a panic of f with v. One that comes out of a nursery inside has the stack that counts.
func panicError(f *Fiber, v any, stack []byte) *PanicError {
	if pe, ok := v.(*PanicError); ok && pe != nil {
		return pe
	}
	return &PanicError{Fiber: f.Name(), Value: v, Stack: stack}
}

// with returns e with more that has failed. e itself may be in others' hands, and stays as it is.
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

// Error returns the panic, the panicking frames, and what else has failed.
func (e *PanicError) Error() string {
	s := fmt.Sprintf("panic in fiber %s: %v\n\n%s", e.Fiber, e.Value, e.Stack)
	if e.Also != nil {
		s += "\nalso failed: " + e.Also.Error()
	}
	return s
}

// Unwrap returns the value of the panic, if that is an error, and Also.
func (e *PanicError) Unwrap() []error {
	var errs []error
	if err, ok := e.Value.(error); ok && err != error((*PanicError)(nil)) { // which has nothing to tell, and no chain
		errs = append(errs, err)
	}
	if e.Also != nil {
		errs = append(errs, e.Also)
	}
	return errs
}
