package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coir-go/coir"
)

type order struct{ id, cents int }

type pipeline struct {
	next  func(context.Context) (order, error) // waits for an order
	ack   func(order)                          // tells its sender that we have it
	price func(context.Context, order) (order, error)
	store func(context.Context, order) error
	keep  func(order) // writes it where the next start finds it; several fibers may call it at a time
	grace time.Duration

	accepted, priced *coir.Chan[order]
}

// run works until ctx ends. Then it accepts no more, and stores what it has acknowledged, for at most grace. What is
// left then, or when a stage fails, goes to keep.
func (p *pipeline) run(ctx context.Context) error {
	left := coir.OnUndelivered(p.keep)
	p.accepted = coir.NewChan[order](64, coir.WithName("accepted"), left)
	p.priced = coir.NewChan[order](64, coir.WithName("priced"), left)
	defer p.accepted.Abort(nil) // all fibers have ended: what is in the channels goes to keep
	defer p.priced.Abort(nil)
	return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		n.Go("stages", func(ctx context.Context) error {
			work, cut := coir.WithGrace(ctx, p.grace) // ends that long after ctx
			defer cut()
			return coir.Run(work, p.stages)
		})
		defer p.accepted.Close() // the stages end when they have taken the rest
		return p.intake(ctx)     // until the program must stop, or a stage has failed
	})
}

func (p *pipeline) intake(ctx context.Context) error {
	for {
		o, err := p.next(ctx)
		if err == nil {
			err = p.accepted.Send(ctx, o)
		}
		switch {
		case err == nil:
			p.ack(o) // only now
		case ctx.Err() != nil:
			return nil // stopping is not a failure; this order was not acknowledged
		default:
			return err
		}
	}
}

func (p *pipeline) stages(_ context.Context, n *coir.Nursery) error {
	n.Go("price", func(ctx context.Context) error {
		defer p.priced.Close() // the next stage ends when it has taken the rest
		return p.each(ctx, p.accepted, func(o order) error {
			o, err := p.price(ctx, o)
			if err != nil {
				return err
			}
			return p.priced.Send(ctx, o)
		})
	})
	n.Go("store", func(ctx context.Context) error {
		return p.each(ctx, p.priced, func(o order) error { return p.store(ctx, o) })
	})
	return nil
}

// each passes the orders of a channel to do, and keeps the one that do has failed on.
func (p *pipeline) each(ctx context.Context, from *coir.Chan[order], do func(order) error) error {
	for o, err := range from.All(ctx) {
		if err != nil {
			return err
		}
		if err := do(o); err != nil {
			p.keep(o)
			return err
		}
	}
	return nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // so that a second signal ends the process
	var acked, stored, kept atomic.Int64
	p := pipeline{
		next: func(ctx context.Context) (order, error) {
			return order{id: int(acked.Load()) + 1}, coir.Sleep(ctx, time.Millisecond)
		},
		ack: func(o order) {
			acked.Add(1)
			fmt.Println("order", o.id, "is accepted")
		},
		price: func(_ context.Context, o order) (order, error) { return order{o.id, 100 * o.id}, nil },
		store: func(ctx context.Context, _ order) error {
			stored.Add(1)
			return coir.Sleep(ctx, 2*time.Millisecond)
		},
		keep:  func(order) { kept.Add(1) },
		grace: 10 * time.Second,
	}
	err := p.run(ctx)
	fmt.Printf("accepted %d: stored %d, kept %d, error %v\n", acked.Load(), stored.Load(), kept.Load(), err)
}
