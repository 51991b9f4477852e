// Package cancels forgets cancel functions, and calls them.
package cancels

import (
	"context"
	"errors"
	"log"
	"testing"
	"time"

	"github.com/coir-go/coir"
	. "github.com/coir-go/coir"
)

func discarded(ctx context.Context) context.Context {
	ctx, _ = coir.WithTimeout(ctx, time.Second) // want `the cancel function of coir.WithTimeout is discarded`
	return ctx
}

func early(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := coir.WithTimeout(ctx, time.Second) // want `cancel, the cancel function of coir.WithTimeout, is not called on every path: at line 23 the function ends; write defer cancel\(\) here`
	if err := f(ctx); err != nil {
		return err
	}
	defer cancel()
	return f(ctx)
}

func cause(ctx context.Context, n int) {
	var in, cancel = WithCancelCause(ctx) // want `cancel, the cancel function of coir.WithCancelCause, is not called on every path: .* write defer cancel\(nil\) here`
	if n > 0 {
		cancel(errors.New("too many"))
	}
	log.Print(in)
}

func overwritten(ctx context.Context) {
	a, cancel := coir.WithCancel(ctx) // want `cancel, the cancel function of coir.WithCancel, is not called on every path: at line 40 another is assigned to it`
	log.Print(a)
	a, cancel = coir.WithDeadline(ctx, time.Now())
	defer cancel()
	log.Print(a)
}

func inALiteral(ctx context.Context) error {
	return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		for range 3 {
			ctx, cancel := coir.WithTimeout(ctx, time.Second) // want `cancel, the cancel function of coir.WithTimeout, is not called on every path`
			if ctx.Err() != nil {
				continue
			}
			cancel()
		}
		return nil
	})
}

func plain(ctx context.Context) error {
	ctx, cancel := coir.WithTimeout(ctx, time.Second)
	defer cancel()
	return coir.WaitCancel(ctx)
}

func onEachPath(ctx context.Context, n int) {
	_, cancel := coir.WithCancel(ctx)
	switch {
	case n > 1:
		cancel()
	case n > 0:
		panic("one")
	default:
		func() { cancel() }()
	}
}

func passedOn(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := coir.WithCancel(ctx)
	return ctx, cancel
}

func result(ctx context.Context) (in context.Context, cancel context.CancelFunc) {
	in, cancel = coir.WithCancel(ctx)
	return
}

func inATest(t *testing.T) {
	_, cancel := coir.WithCancel(t.Context())
	if t.Failed() {
		t.Fatal("before it began")
	}
	t.Cleanup(cancel)
}

type server struct{ stop context.CancelFunc }

func (s *server) start(ctx context.Context) {
	_, s.stop = coir.WithCancel(ctx)
}

func deferredBefore(ctx context.Context) {
	var cancel context.CancelFunc
	defer func() {
		if cancel != nil {
			cancel()
		}
	}()
	ctx, cancel = coir.WithCancel(ctx)
	log.Print(ctx)
}

func others(ctx context.Context) { _, _ = with(ctx) }

func with(ctx context.Context) (context.Context, func()) { return ctx, func() {} }
