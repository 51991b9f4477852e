package sim

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/coir-go/coir"
)

// batches is the sequential model of RecvBatch, for a receiver that does nothing else: it splits values that arrive at
// the given times. A batch has up to size values, the last of which comes at most linger after the first.
func batches(arrive []int, size, linger int) (sizes []int) {
	for i := 0; i < len(arrive); {
		n := 1
		for i+n < len(arrive) && n < size && arrive[i+n] <= arrive[i]+linger {
			n++
		}
		sizes = append(sizes, n)
		i += n
	}
	return sizes
}

// The test compares RecvBatch with its model. Values arrive at even times and linger is odd, so that none arrives when
// a batch ends. The times are decisions of the schedule.
func TestOwnRecvBatch(t *testing.T) {
	for _, capacity := range []int{0, 1, coir.Unbounded} {
		Test(t, func(ctx context.Context, s *Sim) {
			c := coir.NewChan[int](capacity)
			size, linger := 1+s.Intn(3), 1+2*s.Intn(3)
			var arrive, got, sizes []int
			_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
				n.Go("sender", func(ctx context.Context) error {
					defer c.Close()
					now := 0
					for i := range 5 {
						d := 2 * s.Intn(3)
						now += d
						if d > 0 {
							_ = coir.Sleep(ctx, time.Duration(d))
						}
						arrive = append(arrive, now)
						_ = c.Send(ctx, i)
					}
					return nil
				})
				n.Go("receiver", func(ctx context.Context) error {
					into := make([]int, size)
					for {
						n, err := c.RecvBatch(ctx, into, time.Duration(linger))
						if errors.Is(err, coir.ErrClosed) && n == 0 {
							return nil
						}
						if err != nil || n == 0 {
							s.Errorf("RecvBatch: %d, %v", n, err)
							return nil
						}
						got, sizes = append(got, into[:n]...), append(sizes, n)
					}
				})
				return nil
			})
			if !slices.Equal(got, []int{0, 1, 2, 3, 4}) {
				s.Errorf("received %v", got)
			}
			if want := batches(arrive, size, linger); !slices.Equal(sizes, want) {
				s.Errorf("batches of %v, want %v, for values at %v, at most %d, linger %d", sizes, want, arrive, size, linger)
			}
			s.Sometimes(len(sizes) == 5 && size > 1, "each value comes too late for the one before")
			s.Sometimes(len(sizes) < 5 && sizes[0] < size, "a batch ends by time")
		}, WithSchedules(2_500), WithStrategy(Random))
	}
}

// A RecvBatch that is cancelled while it lingers loses nothing: it returns the values that it has received, without an
// error, and the rest is still in the channel.
func TestOwnRecvBatchCancelled(t *testing.T) {
	own(t, func(ctx context.Context, s *Sim) {
		c := coir.NewChan[int](1)
		var got []int
		failed, left := false, 0
		_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			receiver := n.Go("receiver", func(ctx context.Context) error {
				ctx, cancel := coir.WithCancel(ctx)
				n.Go("canceller", func(context.Context) error { cancel(); return nil })
				into := make([]int, 3)
				for {
					n, err := c.RecvBatch(ctx, into, time.Hour)
					if (n > 0) == (err != nil) {
						s.Errorf("RecvBatch: %d, %v", n, err)
					}
					if err != nil {
						failed = errors.Is(err, context.Canceled)
						return nil
					}
					got = append(got, into[:n]...)
				}
			})
			n.Go("sender", func(ctx context.Context) error {
				for i := range 4 {
					if err := c.Send(ctx, i); err != nil {
						return nil
					}
				}
				return nil
			})
			n.Go("rest", func(ctx context.Context) error {
				if err := receiver.Wait(ctx); err != nil {
					return err
				}
				for len(got)+left < 4 {
					v, err := c.Recv(ctx)
					if err != nil || v != len(got)+left {
						s.Errorf("received %v, and then %d, %v", got, v, err)
						return err
					}
					left++
				}
				return nil
			})
			return nil
		})
		if !failed || !slices.Equal(got, []int{0, 1, 2, 3}[:len(got)]) {
			s.Errorf("received %v", got)
		}
		s.Sometimes(len(got) == 1, "it is cancelled after the first")
		s.Sometimes(len(got) == 0, "it is cancelled before")
	})
}
