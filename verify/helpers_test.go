package verify

import (
	"context"
	"errors"
	"strings"
)

// isCancelFor reports whether err says that an operation was cancelled for cause: it is context.Canceled and shows the
// cause, but does not match it.
func isCancelFor(err, cause error) bool {
	return errors.Is(err, context.Canceled) && !errors.Is(err, cause) &&
		strings.Contains(err.Error(), "cancelled: "+cause.Error())
}
