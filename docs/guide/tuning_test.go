package guide_test

// The code of tuning.md.

import (
	"context"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
)

func fetch(ctx context.Context, url string) (*http.Response, error) {
	return coir.Blocking(ctx, func() (*http.Response, error) { return http.Get(url) })
}

type request int

var handled atomic.Int64

func handle(_ context.Context, r request) error {
	handled.Add(int64(r))
	return nil
}

func handleAll(ctx context.Context, requests iter.Seq[request]) error {
	return coir.ForEach(ctx, 64, requests, handle) // takes a request only when there is room
}

func configure() error {
	return coir.Configure(
		coir.WithWorkers(2),
		coir.OnStall(100*time.Millisecond, func(s coir.Stall) { slog.Warn("slow fiber", "fiber", s.Fiber, "stack", s.Stack) }),
	)
}

func TestTuning(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	err := coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		n.Go("fetch", func(ctx context.Context) error {
			resp, err := fetch(ctx, server.URL)
			if err != nil {
				return err
			}
			return resp.Body.Close()
		})
		return handleAll(ctx, slices.Values([]request{1, 2, 3}))
	})
	if err != nil || handled.Load() != 6 {
		t.Errorf("%d, %v", handled.Load(), err)
	}
	if configure() == nil { // the default runtime has been used
		t.Error("Configure changes a runtime that is in use")
	}
}
