package pace

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/coir-go/coir"
)

// Limiter is a rate limiter with a token bucket: each use takes one or more tokens, and a new token is added every
// interval, until the bucket holds as many as the burst allows. The bucket is full at first.
//
// Callers get their tokens in the order of arrival. If a caller's context ends, it takes no tokens, and the next caller
// moves up. Any number of fibers and goroutines may use a Limiter.
//
// A Limiter has no case for a select: the time at which a caller gets its tokens depends on all callers before it, so a
// case would have to move up in the queue while its fiber is parked, and leave without a trace if another case is
// chosen. Instead, start a fiber that waits for the token and sends on a channel.
type Limiter struct {
	timer  *coir.Timer
	bucket bucket
	name   string
}

// ErrTooMany is the error of a call that needs more tokens than the bucket can hold. Check for it with errors.Is.
var ErrTooMany = errors.New("pace: more tokens than the bucket holds")

// NewLimiter returns a Limiter that gets a token every interval, and holds up to burst tokens. Both must be positive.
// [coir.WithName] gives it a name, which errors and reports show.
func NewLimiter(interval time.Duration, burst int, opts ...coir.NameOption) *Limiter {
	if interval <= 0 || burst <= 0 {
		panic(fmt.Sprintf("pace: NewLimiter(%v, %d): the interval and the burst must be positive", interval, burst))
	}
	if interval > maxTime/4/time.Duration(burst) {
		panic(fmt.Sprintf("pace: NewLimiter(%v, %d): the bucket would take more than 70 years to fill", interval, burst))
	}
	l := &Limiter{bucket: bucket{interval: interval, burst: burst}}
	l.bucket.full = interval * time.Duration(burst)
	for _, o := range opts {
		l.name = o.Name()
	}
	l.timer = coir.NewTimer(&l.bucket, coir.WithName(l.name))
	return l
}

// Wait waits for a token and takes it.
func (l *Limiter) Wait(ctx context.Context) error { return l.WaitN(ctx, 1) }

// WaitN waits until there are n tokens, and takes them; for 0 tokens it does not wait. If it returns an error, it has
// taken none. It returns ctx's error if ctx has ended, for any n, or ends before there are enough tokens. It returns
// [ErrTooMany] immediately if the bucket cannot hold n tokens. If it can tell that the tokens will come after the
// deadline of ctx, WaitN returns an error that matches [coir.ErrTimeout] without waiting for that deadline; it can tell
// once no other caller is ahead in the queue.
func (l *Limiter) WaitN(ctx context.Context, n int) error {
	if n <= 0 || n > l.bucket.burst {
		return l.withoutWait(ctx, n)
	}
	_, err := l.timer.Wait(ctx, n)
	if err == coir.ErrTimeout { //nolint:errorlint // a wrapped one already has details
		return l.late(n, err)
	}
	return err
}

// TryWaitN takes n tokens if there are enough and no caller waits, and reports whether it did.
func (l *Limiter) TryWaitN(n int) bool {
	if n == 0 {
		return true
	}
	if n < 0 {
		panic(fmt.Sprintf("pace: TryWaitN(%d): the number of tokens must not be negative", n))
	}
	if n > l.bucket.burst {
		return false
	}
	_, ok := l.timer.TryWait(n)
	return ok
}

// Cap returns how many tokens the bucket holds.
func (l *Limiter) Cap() int { return l.bucket.burst }

// String returns a short description of the limiter.
func (l *Limiter) String() string {
	return fmt.Sprintf("pace.Limiter(%s%v, %d)", l.of(""), l.bucket.interval, l.bucket.burst)
}

// withoutWait implements WaitN for an n that needs no wait: 0, or more than the bucket holds.
func (l *Limiter) withoutWait(ctx context.Context, n int) error {
	if n < 0 {
		panic(fmt.Sprintf("pace: WaitN(%d): the number of tokens must not be negative", n))
	}
	if err := coir.Ended(ctx); err != nil {
		return err
	}
	if n > 0 {
		return fmt.Errorf("%w: %s%d tokens requested, burst is %d", ErrTooMany, l.of(""), n, l.bucket.burst)
	}
	return nil
}

func (l *Limiter) late(n int, err error) error {
	are := "are"
	if n == 1 {
		are = "is"
	}
	return fmt.Errorf("pace: %s%w before there %s %s", l.of("wait for "), err, are, tokens(n))
}

// of returns the name of the limiter, preceded by word and followed by a colon, or nothing if it has no name.
func (l *Limiter) of(word string) string {
	if l.name == "" {
		return ""
	}
	return word + l.name + ": "
}

// tokens returns a number of tokens in words.
func tokens(n int) string {
	if n == 1 {
		return "1 token"
	}
	return strconv.Itoa(n) + " tokens"
}

// bucket is the schedule of a Limiter. It counts time instead of tokens, and so needs no fractions. empty is the time
// at which the bucket was or would have been empty; taking a token adds an interval to it.
//
// Invariant: after Due, empty is between now - full and now, and the bucket holds (now - empty) / interval tokens.
type bucket struct {
	interval time.Duration
	burst    int
	full     time.Duration // the time to fill an empty bucket
	empty    time.Duration
	started  bool
}

// Due implements coir.Schedule.
//
//go:norace
func (b *bucket) Due(n int, now time.Duration) time.Duration {
	if !b.started {
		b.started, b.empty = true, now-b.full
	}
	b.empty = max(b.empty, now-b.full)
	return b.empty + b.interval*time.Duration(n)
}

// Take implements coir.Schedule. Due has been called at the same time.
//
//go:norace
func (b *bucket) Take(n int, _ time.Duration) int {
	b.empty += b.interval * time.Duration(n)
	return n
}

// Words implements coir.Schedule.
func (b *bucket) Words(n int) string { return "for " + tokens(n) + " of" }
