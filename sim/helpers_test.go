package sim

import (
	"context"
	"errors"
	"strings"

	"github.com/coir-go/coir"
)

// isCancelFor reports whether err is only the error of an operation cancelled for cause: it is context.Canceled, its
// text includes the cause, and it matches neither the cause nor any other error of an operation.
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

// isCancelIn is isCancelFor for an operation under ctx, which has the cause.
func isCancelIn(ctx context.Context, err, cause error) bool {
	//nolint:errorlint // the very value is promised
	return isCancelFor(err, cause) && ctx.Err() == context.Canceled && context.Cause(ctx) == cause
}
