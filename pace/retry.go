package pace

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coir-go/coir"
)

// Retry calls f until it returns nil, and returns nil then. times is the largest number of retries, so f is called at
// most once more than that. Before the first retry Retry waits for about first, and before each further retry twice as
// long as before, but never longer than most, or than first if that is longer. A random part of each wait, up to half
// of it, is left out, so that many callers do not retry at the same time.
//
// After the last retry, Retry returns the error of f. If f returns an error from [Permanent], Retry returns that error
// and does not retry. If ctx ends, the error matches that of ctx and the last one of f. Retry calls f even if ctx has
// ended.
//
//	err := pace.Retry(ctx, 5, 100*time.Millisecond, 10*time.Second, func(ctx context.Context) error {
//		return store.Put(ctx, key, value)
//	})
//
// To limit the time of each call, use [coir.WithTimeout] in f.
func Retry(
	ctx context.Context, times int, first, most time.Duration, f func(ctx context.Context) error,
) error {
	if times < 0 {
		panic(fmt.Sprintf("pace: Retry: %d retries: the number must be 0 or more", times))
	}
	first = max(first, 0)
	most = max(most, first)
	for wait := first; ; wait += min(wait, most-wait) { // doubles the wait, without an overflow
		err := f(ctx)
		if err == nil || times == 0 || errors.As(err, new(*permanent)) {
			return err
		}
		times--
		if ended := coir.Sleep(ctx, wait-coir.Jitter(ctx, wait/2)); ended != nil {
			if errors.Is(err, ctx.Err()) { // f has returned because ctx has ended
				return err
			}
			return fmt.Errorf("pace: no further retry: %w; the last call: %w", ended, err)
		}
	}
}

// Permanent returns an error with the text of err, which [Retry] does not retry. It wraps err. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanent{err}
}

type permanent struct{ err error }

func (p *permanent) Error() string { return p.err.Error() }
func (p *permanent) Unwrap() error { return p.err }
