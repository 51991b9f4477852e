package etl

// Whatever fails, every item that was read is counted. The loaded items are in order, and none is loaded twice.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/sim"
)

var (
	errBroken   = errors.New("broken")
	errRejected = errors.New("rejected")
)

// TestRun runs a pipeline whose functions take time and fail. Some schedules also cancel it.
func TestRun(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		const items, parallel, batch = 5, 2, 2
		c := Config[int, int]{Parallel: parallel, Batch: batch, Linger: time.Second}
		var loaded []int
		read, broken := 0, false
		var rejected [items + 1]bool // indexed by item
		var running atomic.Int64
		c.Extract = func(context.Context) (int, error) {
			if s.Fault("source") {
				return 0, errBroken
			}
			if read == items {
				return 0, io.EOF
			}
			read++
			return read, nil
		}
		c.Transform = func(ctx context.Context, item int) (int, error) {
			defer running.Add(-1)
			if n := running.Add(1); n > parallel {
				s.Errorf("%d calls of Transform run", n)
			}
			if err := coir.Sleep(ctx, time.Duration(s.Intn(2))*time.Second); err != nil {
				return 0, err
			}
			if s.Fault("reject") {
				rejected[item] = true
				return 0, errRejected
			}
			return item, nil
		}
		c.Load = func(_ context.Context, rows []int) error {
			if broken = s.Fault("load"); broken {
				return errBroken
			}
			if len(rows) == 0 || len(rows) > batch {
				s.Errorf("a batch of %d", len(rows))
			}
			loaded = append(loaded, rows...)
			return nil
		}

		ctx, cancel := coir.WithCancel(ctx)
		defer cancel()
		var r Report
		var err error
		_ = coir.Run(coir.Shield(ctx), func(_ context.Context, n *coir.Nursery) error {
			n.Go("cancel", func(ctx context.Context) error {
				if s.Fault("cancel") {
					cancel()
				}
				return nil
			})
			r, err = Run(ctx, c)
			return nil
		})

		if r.Read != read || r.Loaded != len(loaded) || r.Read != r.Loaded+r.Rejected+r.Lost {
			s.Errorf("it read %d and loaded %v, and reports %+v", read, loaded, r)
		}
		var want []int
		for item := 1; item <= read; item++ {
			if !rejected[item] {
				want = append(want, item)
			}
		}
		if r.Rejected > read-len(want) {
			s.Errorf("it reports %d rejected, not %d", r.Rejected, read-len(want))
		}
		if len(loaded) > len(want) || !slices.Equal(loaded, want[:len(loaded)]) {
			s.Errorf("it loaded %v of %v", loaded, want)
		}
		cancelled := ctx.Err() != nil
		switch {
		case r.Lost > 0 && !cancelled && !broken:
			s.Errorf("%d items were lost without a reason", r.Lost)
		case err == nil && (r.Lost > 0 || broken), err != nil && !errors.Is(err, errBroken) && !cancelled:
			s.Errorf("the error is %v, the report %+v", err, r)
		}
		s.Sometimes(err == nil && r.Loaded == items, "all is loaded")
		s.Sometimes(err == nil && r.Rejected > 0, "some items are rejected")
		s.Sometimes(broken && r.Lost > 0, "items were on their way when Load failed")
		before := errors.Is(err, errBroken) && !broken && r.Loaded > 0 && r.Lost == 0
		s.Sometimes(before, "items before a failure of the source")
		s.Sometimes(cancelled && r.Loaded > 0 && r.Lost > 0, "cancelled in the middle")
	}, sim.WithFaults("source", "reject", "load", "cancel"), sim.WithSchedules(3000))
}

// TestLinger checks that an incomplete batch is loaded after it has waited for long enough.
func TestLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var batches []string
		item := 0
		r, err := Run(t.Context(), Config[int, int]{
			Extract: func(ctx context.Context) (int, error) {
				if item++; item > 5 {
					return 0, io.EOF
				}
				if item == 4 {
					return item, coir.Sleep(ctx, time.Minute)
				}
				return item, nil
			},
			Transform: func(_ context.Context, item int) (int, error) { return item, nil },
			Load: func(_ context.Context, rows []int) error {
				batches = append(batches, fmt.Sprint(rows, " after ", time.Since(began)))
				return nil
			},
			Parallel: 4, Batch: 2, Linger: time.Second,
		})
		want := []string{"[1 2] after 0s", "[3] after 1s", "[4 5] after 1m0s"}
		if err != nil || r.Loaded != 5 || !slices.Equal(batches, want) {
			t.Errorf("it loaded %q, %+v, %v", batches, r, err)
		}
	})
}
