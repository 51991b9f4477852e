//go:build corpus

package mixed

import (
	"context"
	"sync"
	"testing"

	"github.com/coir-go/coir"
)

// A runtime belongs to the schedule in which it was created. A runtime that was created before the schedule cannot be
// used, and the error says so.

var before = coir.NewRuntime()

var shared = sync.OnceValue(func() *coir.Runtime { return coir.NewRuntime() })

func receive(ctx context.Context, n *coir.Nursery) error {
	c := coir.NewChan[int](0)
	n.Go("send", func(ctx context.Context) error { return c.Send(ctx, 1) })
	_, err := c.Recv(ctx)
	return err
}

// Expect: panic
func TestBugSharedRuntime(t *testing.T) {
	if err := before.Run(t.Context(), receive); err != nil {
		t.Error(err)
	}
}

// A runtime that is created in one schedule and kept would fail in the next one. So each schedule gets its own process.
func TestFixedLastingRuntime(t *testing.T) {
	if err := shared().Run(t.Context(), receive); err != nil {
		t.Error(err)
	}
}

// coir.Run has a separate runtime for each schedule.
func TestFixedSharedRuntime(t *testing.T) {
	for range 2 {
		if err := coir.Run(t.Context(), receive); err != nil {
			t.Error(err)
		}
	}
}

// An unused runtime holds no goroutine, whether it is closed or not.
func TestFixedRuntimeNotClosed(t *testing.T) {
	if err := coir.NewRuntime().Run(t.Context(), receive); err != nil {
		t.Error(err)
	}
}
