// Package etl is examples/etl with goroutines, channels and errgroup.
//
// Every stage is bounded: a slow stage slows the source, and only the items on their way are in memory. Each item that
// was read is accounted for. To stop early and lose nothing, end the source; to stop immediately, cancel the context.
package etl

import (
	"context"
	"errors"
	"io"
	"time"

	"golang.org/x/sync/errgroup"
)

// Config holds the parts of a pipeline, and their bounds.
type Config[In, Out any] struct {
	Extract   func(ctx context.Context) (In, error) // the next item; io.EOF if there are no more
	Transform func(ctx context.Context, item In) (Out, error)
	Load      func(ctx context.Context, batch []Out) error // must not keep the batch

	Parallel int           // calls of Transform at a time
	Batch    int           // the largest batch
	Linger   time.Duration // how long a batch that is not full waits for more
}

// Report counts items.
type Report struct {
	Read     int
	Loaded   int
	Rejected int // Transform returned an error
	Lost     int // read, and then the pipeline failed or was cancelled
}

// Run moves all items of the source. If the source fails, the items before the failure are loaded, and Run returns the
// error. If Load fails or ctx ends, Run drops the items on their way and returns the error.
func Run[In, Out any](ctx context.Context, c Config[In, Out]) (Report, error) {
	p := &pipeline[In, Out]{
		Config:      c,
		transformed: make(chan chan result[Out], c.Parallel),
		rows:        make(chan Out, c.Batch),
	}
	eg, ctx := errgroup.WithContext(ctx)
	eg.Go(func() error { return p.extract(ctx) })
	eg.Go(func() error { return p.gather(ctx) })
	eg.Go(func() error { return p.load(ctx) })
	err := eg.Wait()
	p.Lost = p.Read - p.Loaded - p.Rejected
	return p.Report, errors.Join(err, p.failed)
}

type pipeline[In, Out any] struct {
	Config[In, Out]
	Report
	transformed chan chan result[Out] // in the order of the source
	rows        chan Out
	failed      error // of the source
}

type result[Out any] struct {
	row Out
	err error
}

// extract starts a goroutine for each item.
func (p *pipeline[In, Out]) extract(ctx context.Context) error {
	defer close(p.transformed)
	var workers errgroup.Group
	workers.SetLimit(p.Parallel)
	defer func() { _ = workers.Wait() }() // they return nil
	for {
		item, err := p.Extract(ctx)
		if err != nil {
			if !errors.Is(err, io.EOF) {
				p.failed = err
			}
			return nil
		}
		p.Read++
		done := make(chan result[Out], 1)
		workers.Go(func() error {
			row, err := p.Transform(ctx, item)
			done <- result[Out]{row, err}
			return nil
		})
		select {
		case p.transformed <- done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// gather passes on the transformed items, in order.
func (p *pipeline[In, Out]) gather(ctx context.Context) error {
	defer close(p.rows)
	for done := range p.transformed {
		r := <-done
		if ctx.Err() != nil {
			break // that may be why Transform failed
		}
		if r.err != nil {
			p.Rejected++
			continue
		}
		select {
		case p.rows <- r.row:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return ctx.Err()
}

func (p *pipeline[In, Out]) load(ctx context.Context) error {
	batch := make([]Out, 0, p.Batch)
	linger := time.NewTimer(p.Linger)
	defer linger.Stop()
	for {
		var err error
		if batch, err = p.collect(ctx, batch[:0], linger); err != nil || len(batch) == 0 {
			return err
		}
		if err := p.Load(ctx, batch); err != nil {
			return err
		}
		p.Loaded += len(batch)
	}
}

// collect waits for a row, and for more until the batch is full or linger has passed. It returns no rows if there are
// no more.
func (p *pipeline[In, Out]) collect(ctx context.Context, batch []Out, linger *time.Timer) ([]Out, error) {
	var late <-chan time.Time
	for len(batch) < p.Batch {
		select {
		case row, ok := <-p.rows:
			if !ok {
				return batch, nil
			}
			batch = append(batch, row)
			if late == nil {
				linger.Reset(p.Linger)
				late = linger.C
			}
		case <-late:
			return batch, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return batch, nil
}
