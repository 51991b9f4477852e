package pace_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/pace"
	"github.com/coir-go/coir/sim"
	"github.com/coir-go/coir/snapshot"
)

var errDown = errors.New("down")

// TestRetryAgainstModel compares random calls with a model: how often f is called, and when.
func TestRetryAgainstModel(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		times, failures := r.IntN(8), r.IntN(10)
		first, most := time.Duration(r.IntN(1000)), time.Duration(r.IntN(20000))
		var at []time.Duration // of the calls
		f := sim.Run(seed, func(ctx context.Context, s *sim.Sim) {
			at = at[:0]
			_ = coir.Yield(ctx) // so that the schedule has an operation even if nothing fails
			err := pace.Retry(ctx, times, first, most, func(ctx context.Context) error {
				if at = append(at, coir.Now(ctx)); len(at) <= failures {
					return errDown
				}
				return nil
			})
			if (err == errDown) != (failures > times) || err != nil && err != errDown { //nolint:errorlint // not wrapped
				s.Errorf("%d failures: %v", failures, err)
			}
		})
		if f != nil {
			t.Fatalf("seed %d: %v", seed, f)
		}
		if want := min(times, failures) + 1; len(at) != want {
			t.Fatalf("seed %d: %d calls, want %d: %d retries allowed, %d failures", seed, len(at), want, times, failures)
		}
		for i, wait := 1, first; i < len(at); i, wait = i+1, min(2*wait, max(first, most)) {
			if took := at[i] - at[i-1]; took > wait || took < wait/2 {
				t.Fatalf("seed %d: retry %d after %v, want %v to %v", seed, i, took, wait/2, wait)
			}
		}
	}
}

// A permanent error is returned as it is, however it is wrapped.
func TestPermanentErrorIsNotRetried(t *testing.T) {
	calls := 0
	err := pace.Retry(context.Background(), 3, time.Hour, time.Hour, func(context.Context) error {
		calls++
		return fmt.Errorf("get: %w", pace.Permanent(errDown))
	})
	if calls != 1 || !errors.Is(err, errDown) || err.Error() != "get: down" {
		t.Errorf("%d calls, error %v", calls, err)
	}
	if pace.Permanent(nil) != nil {
		t.Error("Permanent(nil) is an error")
	}
}

// If the context ends, Retry returns its error and that of the last call.
func TestRetryEndsWithItsContext(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		limited, cancel := coir.WithTimeout(ctx, time.Minute)
		defer cancel()
		err := pace.Retry(limited, math.MaxInt, time.Second, math.MaxInt64, func(context.Context) error { return errDown })
		if !errors.Is(err, coir.ErrTimeout) || !errors.Is(err, errDown) || s.Now() > time.Minute {
			s.Errorf("at %v: %v", s.Now(), err)
		}
		gone, leave := coir.WithCancel(ctx)
		_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			n.Go("leave", func(ctx context.Context) error {
				defer leave()
				return coir.Sleep(ctx, time.Hour)
			})
			err = pace.Retry(gone, math.MaxInt, time.Second, math.MaxInt64, func(context.Context) error { return errDown })
			return nil
		})
		if !errors.Is(err, context.Canceled) || !errors.Is(err, errDown) {
			s.Errorf("cancelled: %v", err)
		}
		_ = coir.WaitCancel(limited)
		err = pace.Retry(limited, 3, time.Second, time.Second, coir.WaitCancel)
		if !errors.Is(err, coir.ErrTimeout) || strings.Contains(err.Error(), "pace") {
			s.Errorf("f returns the error of its context: %v", err)
		}
	}, sim.WithSchedules(20))
}

// built is an error whose text is made anew each time.
type built string

func (b built) Error() string {
	var text strings.Builder
	text.WriteString(string(b))
	return text.String()
}

// While a caller waits, it says for which attempt, and why the last one has failed.
func TestRetryIsSeen(t *testing.T) {
	for text, want := range map[string]string{
		"connection refused":    "connection refused",
		"two\nlines":            "two...",
		"":                      "an error without a text",
		strings.Repeat("é", 81): strings.Repeat("é", 80) + "...",
	} {
		err := coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
			f := n.Go("get", func(ctx context.Context) error {
				return pace.Retry(ctx, 5, time.Hour, time.Hour, func(context.Context) error { return built(text) })
			})
			defer n.Cancel(nil)
			for f.Waiting() == "" { // State returns StateWaiting a moment earlier, while the fiber begins to wait
				if err := coir.Yield(ctx); err != nil {
					return err
				}
			}
			fmt.Fprint(io.Discard, coir.Default().Snapshot(snapshot.Options{}).Fibers) // the race detector is content
			if got := f.Waiting(); got != "before attempt 2, after: "+want {
				t.Errorf("it waits %q", got)
			}
			return nil
		})
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}
