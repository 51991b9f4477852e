package coir_test

// What tests ask of errors.

import (
	"context"
	"errors"
	"strings"

	"github.com/coir-go/coir"
)

// isCancelFor reports whether err says that an operation was cancelled for cause, and nothing else: it is
// context.Canceled, it shows the cause, and it matches neither the cause nor any other way in which an operation can
// end.
func isCancelFor(err, cause error) bool {
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "cancelled: "+cause.Error()) {
		return false
	}
	for _, other := range []error{cause, coir.ErrClosed, coir.ErrTimeout, coir.ErrWouldBlock, context.DeadlineExceeded} {
		if errors.Is(err, other) {
			return false
		}
	}
	return true
}

// isCancelIn is isCancelFor of an operation under ctx, which has the cause.
func isCancelIn(ctx context.Context, err, cause error) bool {
	//nolint:errorlint // the very value is promised
	return isCancelFor(err, cause) && ctx.Err() == context.Canceled && context.Cause(ctx) == cause
}

// cancelFor is an error that a test wants: one for which isCancelFor holds. isWanted knows it.
type cancelFor struct{ cause error }

func (c cancelFor) Error() string { return "a cancel for " + c.cause.Error() }

// isWanted reports whether err is want, which may be nil, or a cancelFor.
func isWanted(err, want error) bool {
	if c, ok := want.(cancelFor); ok { //nolint:errorlint // it is never wrapped
		return isCancelFor(err, c.cause)
	}
	return errors.Is(err, want)
}
