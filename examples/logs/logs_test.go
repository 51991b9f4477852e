package logs

// Whatever fails, the counts cover whole batches, files are closed, and Run returns the error.

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/sim"
)

var errBroken = errors.New("broken")

// memory is an open file in memory. open counts the open files.
type memory struct {
	io.Reader
	open *atomic.Int64
}

func (f memory) Close() error {
	f.open.Add(-1)
	return nil
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errBroken }

func TestRun(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		var open atomic.Int64
		var failed atomic.Bool
		c := Config{Parallel: 2, Batch: 2, Every: time.Second, Progress: func(int) {}}
		for _, text := range []string{"a 200 10\nb 404 1\nc 200 5\n", "nonsense\nd 200 4", ""} {
			c.Files = append(c.Files, func() (io.ReadCloser, error) {
				if s.Fault("open") {
					failed.Store(true)
					return nil, errBroken
				}
				open.Add(1)
				if s.Fault("read") {
					failed.Store(true)
					return memory{io.MultiReader(strings.NewReader(text), broken{}), &open}, nil
				}
				return memory{strings.NewReader(text), &open}, nil
			})
		}
		ctx, cancel := coir.WithCancel(ctx)
		defer cancel()
		var r Report
		var err error
		_ = coir.Run(coir.Shield(ctx), func(_ context.Context, n *coir.Nursery) error {
			n.Go("cancel", func(context.Context) error {
				if s.Fault("cancel") {
					cancel()
				}
				return nil
			})
			r, err = Run(ctx, c)
			return nil
		})
		if open.Load() != 0 {
			s.Errorf("%d files are open", open.Load())
		}
		cancelled := ctx.Err() != nil
		switch {
		case err == nil && (r.Lines != 5 || r.Bad != 1 || r.Bytes != 20 || r.Status[200] != 3 || r.Status[404] != 1):
			s.Errorf("the report is %+v, want 5 lines, 1 bad, 20 bytes, status 200 three times and 404 once", r)
		case err == nil && failed.Load(), err != nil && !failed.Load() && !cancelled:
			s.Errorf("the error is %v", err)
		case err != nil && !errors.Is(err, errBroken) && !cancelled:
			s.Errorf("the error is %v", err)
		}
		s.Sometimes(err == nil, "all is counted")
		s.Sometimes(failed.Load() && r.Lines > 0, "some lines before a failure")
		s.Sometimes(cancelled && err != nil && r.Lines > 0, "cancelled in the middle")
	}, sim.WithFaults("open", "read", "cancel"), sim.WithSchedules(1500))
}
