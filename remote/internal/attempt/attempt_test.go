package attempt_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote/internal/attempt"
	"github.com/coir-go/coir/sim"
)

// ask is a request to a broker that takes the given time.
func ask(ctx context.Context, long time.Duration) error {
	if err := coir.Sleep(ctx, long); err != nil {
		return fmt.Errorf("%w: %w", attempt.ErrUnknown, err)
	}
	return nil
}

// A broker that takes 3 seconds for an answer gets only five requests.
func TestALimitGrows(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		n := 0
		ctx, cancel := coir.WithTimeout(ctx, time.Minute)
		defer cancel()
		err := attempt.Repeat(ctx, 0, func(ctx context.Context) error {
			n++
			return ask(ctx, 3*time.Second)
		})
		if err != nil || n != 5 {
			s.Errorf("%d attempts, %v", n, err)
		}
	})
}

// An attempt that fails before its limit does not make the next one longer.
func TestALimitStays(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		var l attempt.Limit
		for range 10 {
			if err := l.Do(ctx, func(context.Context) error { return attempt.ErrUnavailable }); !attempt.Open(err) {
				s.Errorf("%v", err)
			}
		}
		err := l.Do(ctx, func(ctx context.Context) error { return ask(ctx, time.Second) })
		if !errors.Is(err, attempt.ErrUnknown) || s.Now() != attempt.Short {
			s.Errorf("%v after %v", err, s.Now())
		}
	})
}

// The error of the last attempt does not hide that an earlier attempt may have succeeded.
func TestDoubtStays(t *testing.T) {
	refused := errors.New("refused")
	n := 0
	err := attempt.Repeat(t.Context(), 0, func(context.Context) error {
		if n++; n == 1 {
			return attempt.ErrUnknown
		}
		return refused
	})
	if !errors.Is(err, attempt.ErrUnknown) || !errors.Is(err, refused) {
		t.Errorf("%v", err)
	}
}

// The error of an operation whose context ends says why it was repeated.
func TestTheReasonStays(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		ctx, cancel := coir.WithTimeout(ctx, time.Second)
		defer cancel()
		refused := fmt.Errorf("%w: connection refused", attempt.ErrUnavailable)
		err := attempt.Repeat(ctx, 0, func(context.Context) error { return refused })
		if !errors.Is(err, refused) || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, attempt.ErrUnknown) {
			s.Errorf("%v", err)
		}
	})
}
