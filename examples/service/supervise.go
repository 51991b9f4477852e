package main

import (
	"context"
	"fmt"
	"time"

	"github.com/coir-go/coir"
)

const (
	restarts = 3
	pause    = 10 * time.Millisecond // before the first restart; doubles before each further one
)

// supervise runs work until it returns nil. If work fails or panics, supervise restarts it, up to a limit.
func supervise(ctx context.Context, name string, work func(context.Context) error) error {
	for restart := 0; ; restart++ {
		err := attempt(ctx, name, work)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return err // the service is being cancelled
		case restart == restarts:
			return fmt.Errorf("%s is given up after %d restarts: %w", name, restarts, err)
		}
		if err := coir.Sleep(ctx, pause<<restart); err != nil {
			return err
		}
	}
}

// attempt runs work once, in its own nursery. It returns a panic of work, or of a fiber in a nursery that work opened,
// as an error.
func attempt(ctx context.Context, name string, work func(context.Context) error) (err error) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case *coir.PanicError: // has the fiber's name and stack
			err = v
		default:
			panic(v)
		}
	}()
	return coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
		n.Go(name, work)
		return nil
	})
}
