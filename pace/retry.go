package pace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/coir-go/coir"
)

// Retry calls f until it returns nil, and returns nil then. times is the largest number of retries, so f is called at
// most once more than that. The wait before the first retry is about first, and each further wait is twice as long as
// the one before, but never longer than most, or than first if that is longer. Retry shortens each wait by a random
// part, up to half of it, so that many callers do not retry at the same time.
//
// After the last retry, Retry returns the error of f. If f returns an error from [Permanent], Retry returns that error
// and does not retry. If ctx ends, the error matches that of ctx and the last one of f. If ctx would end before the
// next call, Retry does not wait for that, and the error matches [coir.ErrTimeout] and the last one of f. Retry calls f
// even if ctx has ended. Snapshots and reports say of a caller that waits: "waits before attempt 4, after: connection
// refused".
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
	calls := 0                                          // that have failed
	for wait := first; ; wait += min(wait, most-wait) { // doubles the wait, without an overflow
		err := f(ctx)
		if err == nil || times == 0 || errors.As(err, new(*permanent)) {
			return err
		}
		times--
		calls++
		if ended := pause(ctx, wait-coir.Jitter(ctx, wait/2), calls+1, err); ended != nil {
			if errors.Is(err, ctx.Err()) { // f has returned because ctx has ended
				return err
			}
			return fmt.Errorf("pace: no further retry: %w; the last call: %w", ended, err)
		}
	}
}

// pause waits for d before the call with the given number. Reports and snapshots show that, and err.
func pause(ctx context.Context, d time.Duration, number int, err error) error {
	now := coir.Now(ctx)
	next := &attempt{now + min(d, maxTime-now)}
	// Snapshots read the name. The race detector does not see Sprintf write it.
	_, ended := coir.NewTimer(next, coir.WithName(fmt.Sprintf("attempt %d, after: %s", number, brief(err)))).Wait(ctx, 1)
	return ended
}

// attempt is the schedule of one wait of Retry.
type attempt struct{ at time.Duration }

// Due implements coir.Schedule.
//
//go:norace
func (a *attempt) Due(int, time.Duration) time.Duration { return a.at }

// Take implements coir.Schedule.
//
//go:norace
func (a *attempt) Take(int, time.Duration) int { return 0 }

// Words implements coir.Schedule.
func (a *attempt) Words(int) string { return "before" }

// brief returns the first line of the text of an error, cut to a length that fits into a report.
func brief(err error) string {
	const most = 80
	line, _, more := strings.Cut(err.Error(), "\n")
	if runes := []rune(line); len(runes) > most {
		line, more = string(runes[:most]), true
	}
	if more {
		line += "..."
	}
	return cmp.Or(line, "an error without a text")
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
