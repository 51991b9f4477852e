// Package attempt makes requests whose answers may be lost, for the packages of this module.
package attempt

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coir-go/coir"
)

// The errors after which a request can be repeated. Package remote exports and documents them.
var (
	ErrUnknown     = errors.New("remote: the outcome is not known")
	ErrUnavailable = errors.New("remote: not reachable now")
)

// Open reports whether a request that failed with err can be repeated.
func Open(err error) bool { return errors.Is(err, ErrUnknown) || errors.Is(err, ErrUnavailable) }

// Within calls f, which makes a request, with a time limit. If f fails with the error of the limit and not with
// ErrUnknown, the request had no effect, and Within returns ErrUnavailable.
func Within(ctx context.Context, limit time.Duration, f func(ctx context.Context) error) error {
	return within(ctx, limit, ErrUnavailable, f)
}

// Ask calls f, which asks a question that changes nothing, with a time limit. If f fails with the error of the limit,
// nobody has answered, and Ask returns ErrUnknown: that does not show that the broker cannot be reached.
func Ask(ctx context.Context, limit time.Duration, f func(ctx context.Context) error) error {
	return within(ctx, limit, ErrUnknown, f)
}

func within(ctx context.Context, limit time.Duration, late error, f func(ctx context.Context) error) error {
	short, cancel := coir.WithTimeout(ctx, limit)
	defer cancel()
	err := f(short)
	if isLimit(ctx, err) && !Open(err) {
		return fmt.Errorf("%w: %w", late, err)
	}
	return err
}

// isLimit reports whether err comes from the time limit of an attempt, not from ctx.
func isLimit(ctx context.Context, err error) bool {
	return errors.Is(err, context.DeadlineExceeded) && coir.Ended(ctx) == nil
}

// A Limit is the time limit of the attempts of one operation. The zero value is ready to use.
//
// The first attempt is short, so that a leader that has failed costs little. But an overloaded broker must not get more
// and more requests, because their answers would all come too late. So an attempt that reaches the limit doubles it.
type Limit struct{ last time.Duration }

// The shortest and the longest time limit of an attempt.
const (
	Short = 250 * time.Millisecond
	Long  = 5 * time.Second
)

// Do makes an attempt: see [Within].
func (l *Limit) Do(ctx context.Context, f func(ctx context.Context) error) error {
	limit := max(l.last, Short)
	err := Within(ctx, limit, f)
	if isLimit(ctx, err) {
		l.last = min(2*limit, Long)
	}
	return err
}

// Repeat calls f, an operation that may be repeated, until its outcome is known or ctx ends. Each call has the given
// time limit, or that of a [Limit] if limit is 0. The error also matches ErrUnknown if a call may have had its effect.
// If ctx ends, the error has that of the last call, which says why the outcome is not known yet.
func Repeat(ctx context.Context, limit time.Duration, f func(ctx context.Context) error) error {
	var growing Limit
	back := NewBackoff()
	for doubt := false; ; {
		var err error
		if limit > 0 {
			err = Within(ctx, limit, f)
		} else {
			err = growing.Do(ctx, f)
		}
		doubt = doubt || errors.Is(err, ErrUnknown)
		if err != nil && Open(err) {
			ended := back.Wait(ctx)
			if ended == nil {
				continue
			}
			if !errors.Is(err, ended) { // otherwise err names it already
				err = fmt.Errorf("%w: %w", err, ended)
			}
		}
		return Doubt(doubt, err)
	}
}

// Doubt returns the error of an operation that gives up because of err. If doubt is set, an earlier attempt may have
// taken effect, or may still do so.
func Doubt(doubt bool, err error) error {
	if !doubt || err == nil || errors.Is(err, ErrUnknown) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnknown, err)
}

// Backoff is a time that doubles with each wait.
type Backoff struct{ Next, Most time.Duration }

// The shortest and the longest wait after a request that failed at once.
const (
	backoffMin = 5 * time.Millisecond
	backoffMax = 250 * time.Millisecond
)

// NewBackoff returns the backoff of requests that failed at once.
func NewBackoff() Backoff { return Backoff{backoffMin, backoffMax} }

// Wait waits for the time Next, and then doubles it.
func (b *Backoff) Wait(ctx context.Context) error {
	d := b.Next
	b.Grow()
	return coir.Sleep(ctx, d)
}

// Grow doubles the time.
func (b *Backoff) Grow() { b.Next = min(2*b.Next, b.Most) }
