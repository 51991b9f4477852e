package coir

import (
	"context"
	"errors"
	"fmt"
)

// ErrClosed is returned by operations on what has been closed. Look for it with errors.Is: an error that it is wrapped in
// tells which channel it was, and the cause that [Chan.Abort] was given.
var ErrClosed = errors.New("coir: closed")

// ErrWouldBlock is returned by an operation that must not wait and would have to.
var ErrWouldBlock = errors.New("coir: the operation would have to wait")

// closedError is ErrClosed with what is known about it.
type closedError struct {
	name  string
	cause error
}

func (e *closedError) Error() string {
	s := "coir: channel"
	if e.name != "" {
		s += " " + e.name
	}
	if e.cause == nil {
		return s + " is closed"
	}
	return s + " was aborted: " + e.cause.Error()
}

func (e *closedError) Is(target error) bool { return target == ErrClosed }

func (e *closedError) Unwrap() error { return e.cause }

// ErrGoexit is what [Fiber.Wait] returns for a fiber that ended by runtime.Goexit, as t.FailNow does.
var ErrGoexit = errors.New("coir: the fiber ended by runtime.Goexit")

// ErrTimeout is returned by an operation whose deadline passed. It is also a context.DeadlineExceeded:
//
//	errors.Is(err, context.DeadlineExceeded) // true
var ErrTimeout error = timeoutError{}

type timeoutError struct{}

func (timeoutError) Error() string { return "coir: the deadline has passed" }

// Timeout makes it a timeout for those who ask as package net does.
func (timeoutError) Timeout() bool { return true }

func (timeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// canceledError is what an operation returns in a scope that was cancelled with a cause. It is a context.Canceled and
// wraps the cause.
type canceledError struct{ cause error }

func (e *canceledError) Error() string { return "coir: cancelled: " + e.cause.Error() }

func (e *canceledError) Is(target error) bool { return target == context.Canceled }

func (e *canceledError) Unwrap() error { return e.cause }

// PanicError is what comes out of [Run] when a fiber has panicked: Run panics with it. Its text has the panicking frames.
type PanicError struct {
	Fiber string // the fiber's name
	Value any    // what it panicked with
	Stack []byte // its stack at that moment
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("panic in fiber %s: %v\n\n%s", e.Fiber, e.Value, e.Stack)
}

// Unwrap returns the value of the panic if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
