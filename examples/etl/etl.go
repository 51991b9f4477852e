// Package etl extracts items from a source, transforms several of them at a time, and loads them in batches, in the
// order of the source.
//
// Every stage is bounded: a slow stage slows down the source, and memory holds only the items in progress. Every item
// that was read is counted. To stop early without losing items, end the source; to stop immediately, cancel the
// context.
package etl

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/coir-go/coir"
)

// Config has the parts of a pipeline and their limits.
type Config[In, Out any] struct {
	Extract   func(ctx context.Context) (In, error) // returns the next item, or io.EOF after the last
	Transform func(ctx context.Context, item In) (Out, error)
	Load      func(ctx context.Context, batch []Out) error // must not keep the batch

	Parallel int           // how many calls of Transform may run at a time
	Batch    int           // the largest batch
	Linger   time.Duration // how long an incomplete batch waits for more items
}

// Report counts items.
type Report struct {
	Read     int
	Loaded   int
	Rejected int // Transform returned an error
	Lost     int // read, but the pipeline failed or was cancelled
}

// Run moves all items of the source. If the source fails, Run loads the items before the failure and returns the error.
// If Load fails or ctx ends, Run drops the items in progress and returns the error.
func Run[In, Out any](ctx context.Context, c Config[In, Out]) (Report, error) {
	p := &pipeline[In, Out]{
		Config:      c,
		transformed: coir.NewOrdered[Out](c.Parallel, coir.WithName("transformed")),
		rows:        coir.NewChan[Out](c.Batch, coir.WithName("rows")),
	}
	err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		n.Go("extract", p.extract)
		n.Go("gather", p.gather)
		return p.load(ctx)
	})
	p.Lost = p.Read - p.Loaded - p.Rejected
	return p.Report, errors.Join(err, p.failed)
}

type pipeline[In, Out any] struct {
	Config[In, Out]
	Report
	transformed *coir.Ordered[Out]
	rows        *coir.Chan[Out]
	failed      error // the error of the source
}

// extract starts a fiber for each item.
func (p *pipeline[In, Out]) extract(ctx context.Context) error {
	defer p.transformed.Close()
	return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		n.Limit(p.Parallel)
		for {
			item, err := p.Extract(ctx)
			if err != nil {
				if !errors.Is(err, io.EOF) {
					p.failed = err
				}
				return nil
			}
			p.Read++
			err = p.transformed.Go(ctx, n, "transform", func(ctx context.Context) (Out, error) {
				return p.Transform(ctx, item)
			}, coir.WithIndex(p.Read-1))
			if err != nil {
				return err
			}
		}
	})
}

// gather passes on the transformed items, in order.
func (p *pipeline[In, Out]) gather(ctx context.Context) error {
	defer p.rows.Close()
	for row, err := range p.transformed.All(ctx) {
		if ctx.Err() != nil {
			break // the cancellation may be why Transform failed
		}
		if err != nil {
			p.Rejected++
			continue
		}
		if err := p.rows.Send(ctx, row); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (p *pipeline[In, Out]) load(ctx context.Context) error {
	batch := make([]Out, p.Batch)
	for {
		n, err := p.rows.RecvBatch(ctx, batch, p.Linger)
		if errors.Is(err, coir.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := p.Load(ctx, batch[:n]); err != nil {
			return err
		}
		p.Loaded += n
	}
}
