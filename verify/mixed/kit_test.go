//go:build corpus

package mixed

import (
	"context"
	"testing"

	"github.com/coir-go/coir"
)

// run runs fn as a fiber of a new runtime, and closes the runtime.
func run(t *testing.T, fn func(ctx context.Context, n *coir.Nursery) error, opts ...coir.RuntimeOption) {
	t.Helper()
	rt := coir.NewRuntime(opts...)
	if err := rt.Run(context.Background(), fn); err != nil {
		t.Error(err)
	}
	if err := rt.Close(context.Background()); err != nil {
		t.Error(err)
	}
}
