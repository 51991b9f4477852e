package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coir-go/coir"
)

const (
	restarts = 3 // of each stage, and of each lookup
	delay    = time.Millisecond
)

// stage starts a supervised fiber that passes one record after another to step. The fiber keeps a record until step has
// returned nil for it. It calls end when there are no more records, or when the stage is given up.
func (p *pipeline) stage(n *coir.Nursery, name string, next func(context.Context) (record, error),
	step func(context.Context, record) error, end func() bool,
) {
	n.Go(name, func(ctx context.Context) error {
		defer end()
		var hand *record
		err := p.supervise(ctx, func() error {
			for {
				if hand == nil {
					r, err := next(ctx)
					if errors.Is(err, coir.ErrClosed) {
						return nil
					}
					if err != nil {
						return err
					}
					hand = &r
				}
				if err := p.fault(name, hand.number); err != nil {
					return err
				}
				if err := step(ctx, *hand); err != nil {
					return err
				}
				hand = nil
			}
		})
		if hand != nil {
			p.undelivered.Add(1)
		}
		return err
	})
}

// supervise calls work until it succeeds. It makes a limited number of restarts, with a delay before each.
func (p *pipeline) supervise(ctx context.Context, work func() error) error {
	for attempt := 0; ; attempt++ {
		err := work()
		if err == nil || ctx.Err() != nil {
			return err
		}
		if attempt == restarts {
			return fmt.Errorf("given up after %d restarts: %w", restarts, err)
		}
		if err := coir.Sleep(ctx, delay); err != nil {
			return err
		}
		p.restarted.Add(1)
	}
}
