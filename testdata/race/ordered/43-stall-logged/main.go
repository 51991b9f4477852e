// The log of a stall reads what the spawner has written, from the monitor.
package main

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/coir-go/coir"
)

func main() {
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil)))
	coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		for range 2 {
			n.Go("child", func(context.Context) error {
				time.Sleep(1200 * time.Millisecond)
				return nil
			})
		}
		n.Go("other", func(context.Context) error {
			time.Sleep(1200 * time.Millisecond)
			return nil
		})
		return nil
	})
}
