package main

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/coir-go/coir"
)

const (
	queue  = 16 // records between two stages
	beside = 8  // concurrent lookups
)

// record is a line of the input with its number. Each stage fills in some of the fields.
type record struct {
	number int
	text   string
	cents  int
	rate   int   // the setting under which it was looked up
	err    error // the error of its lookup
}

type pipeline struct {
	input   []string                             // records, and settings such as "rate 3"
	fault   func(stage string, number int) error // returns the error to inject into a stage; only that stage calls it
	lookup  func(context.Context, record) error
	deliver func(record)

	lines, parsed *coir.Chan[record]
	enriched      *coir.Ordered[record]
	rates         *coir.Chan[int]
	rate          int // used only by the enrich stage

	// The fate of the records. Once run has returned, read is the sum of the other three.
	read        atomic.Int64
	delivered   atomic.Int64
	rejected    atomic.Int64 // the record was bad
	undelivered atomic.Int64 // the pipeline failed or was cancelled
	restarted   atomic.Int64
}

// run returns when all fibers have ended and every record is accounted for.
func (p *pipeline) run(ctx context.Context) error {
	left := coir.OnUndelivered(func(record) { p.undelivered.Add(1) })
	p.lines = coir.NewChan[record](queue, coir.WithName("lines"), left)
	p.parsed = coir.NewChan[record](queue, coir.WithName("parsed"), left)
	p.enriched = coir.NewOrdered[record](beside, coir.WithName("enriched"))
	p.rates = coir.NewChan[int](coir.Conflated, coir.WithName("rates"))
	err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
		n.Go("source", p.source)
		p.stage(n, "parse", p.lines.Recv, p.parse, p.parsed.Close)
		p.stage(n, "enrich", p.nextParsed, p.enrichIn(n), p.enriched.Close)
		p.stage(n, "sink", p.enriched.Recv, p.sink, func() bool { return true })
		return nil
	})
	p.lines.Abort(err) // passes the records left in a failed pipeline to OnUndelivered
	p.parsed.Abort(err)
	for range p.enriched.All(context.Background()) {
		p.undelivered.Add(1)
	}
	return err
}

// source reads the input. A setting overtakes queued records. A newer setting replaces one that was not yet applied.
func (p *pipeline) source(ctx context.Context) error {
	defer p.lines.Close()
	for number, text := range p.input {
		if setting, ok := strings.CutPrefix(text, "rate "); ok {
			rate, err := strconv.Atoi(setting)
			if err != nil {
				return err
			}
			if err := p.rates.Send(ctx, rate); err != nil {
				return err
			}
			continue
		}
		p.read.Add(1)
		if err := p.lines.Send(ctx, record{number: number, text: text}); err != nil {
			p.undelivered.Add(1) // the failed Send did not pass on the record
			return err
		}
	}
	return nil
}

func (p *pipeline) parse(ctx context.Context, r record) (err error) {
	if r.cents, err = strconv.Atoi(r.text); err != nil {
		p.rejected.Add(1)
		return nil
	}
	return p.parsed.Send(ctx, r)
}

// nextParsed applies the newest setting and then receives a record. So no record is looked up under a setting older
// than the one in force when it was read.
func (p *pipeline) nextParsed(ctx context.Context) (r record, err error) {
	for {
		which, err := coir.SelectPriority(ctx, p.rates.RecvCase(&p.rate), p.parsed.RecvCase(&r))
		if err != nil || which == 1 {
			return r, err
		}
	}
}

// enrichIn looks up each record in a fiber of n, several concurrently. Each lookup has its own supervisor, so a failed
// lookup does not stop the others.
func (p *pipeline) enrichIn(n *coir.Nursery) func(context.Context, record) error {
	return func(ctx context.Context, r record) error {
		r.rate = p.rate
		return p.enriched.Go(ctx, n, "lookup", func(ctx context.Context) (record, error) {
			r.err = p.supervise(ctx, func() error { return p.lookup(ctx, r) })
			return r, nil
		}, coir.WithIndex(r.number))
	}
}

func (p *pipeline) sink(ctx context.Context, r record) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err() // the cancellation may be why the lookup failed
	case r.err != nil:
		p.rejected.Add(1)
	default:
		p.deliver(r)
		p.delivered.Add(1)
	}
	return nil
}
