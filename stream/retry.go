package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coir-go/coir"
)

// Retry runs s again from its source if it fails; times is the largest number of retries in a row. Before the first
// retry it waits for about first, and before each further retry twice as long as before, but never longer than most. A
// part of each wait is random, so that many streams do not retry at the same time. Each element resets the count. The
// consumer gets the elements of all runs: if the source starts over, it repeats elements. If the context ends, Retry
// returns the context's error instead of that of the last run.
//
//	                a-b-X     a-b-c-|
//	Retry(3, ...)   a-b-------a-b-c-|
func Retry[T any](s Stream[T], times int, first, most time.Duration) Stream[T] {
	if times < 0 {
		panic(fmt.Sprintf("stream: Retry(%d): the number of retries must be 0 or more", times))
	}
	return stage(fused(s.plan, "Retry(%d)", times), func(ctx context.Context, d *demand, push func([]T) bool) error {
		left, wait, on := times, first, true
		for {
			err := s.start(ctx, d, func(vs []T) bool {
				left, wait = times, first
				on = push(vs)
				return on
			})
			if err == nil || !on || left == 0 {
				return err
			}
			if ctx.Err() != nil {
				return cutShort(ctx, err)
			}
			left--
			if err := coir.Sleep(ctx, wait/2+coir.Jitter(ctx, wait-wait/2)); err != nil {
				return err
			}
			wait += min(wait, max(most, first)-wait) // doubles the wait, without an overflow
		}
	})
}

// cutShort returns the error of a stage that stops after err because ctx has ended. If err is an error of ctx it
// returns err, which may have more detail.
func cutShort(ctx context.Context, err error) error {
	if errors.Is(err, ctx.Err()) {
		return err
	}
	return coir.Ended(ctx)
}
