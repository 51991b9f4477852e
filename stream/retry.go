package stream

import (
	"context"
	"time"

	"github.com/coir-go/coir"
)

// Retry runs s again, from its source, if it fails, up to times times. Before the first time it waits for about first,
// and each time twice as long, up to most; a random part of each wait keeps many retries from coming together. An
// element resets the count. The consumer gets the elements of all runs: a source that begins anew repeats them.
//
//	                a-b-X     a-b-c-|
//	Retry(3, ...)   a-b-------a-b-c-|
func Retry[T any](s Stream[T], times int, first, most time.Duration) Stream[T] {
	return stage(fused(s.plan, "Retry(%d)", times), func(ctx context.Context, d *demand, push func([]T) bool) error {
		left, wait, on := times, first, true
		for {
			err := s.start(ctx, d, func(vs []T) bool {
				left, wait = times, first
				on = push(vs)
				return on
			})
			if err == nil || !on || left <= 0 || ctx.Err() != nil {
				return err
			}
			left--
			if err := coir.Sleep(ctx, wait/2+coir.Jitter(ctx, wait-wait/2)); err != nil {
				return err
			}
			wait += min(wait, max(most, first)-wait) // twice as long, without an overflow
		}
	})
}
