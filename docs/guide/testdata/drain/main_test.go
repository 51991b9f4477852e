package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/sim"
)

var errDisk = errors.New("the disk is full")

// TestNothingIsLost: the stop, a slow stage, and one that fails meet orders at every place. Each order that was
// acknowledged is stored or kept, once.
func TestNothingIsLost(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		acked, stored, kept := map[int]int{}, map[int]int{}, map[int]int{}
		made := 0
		p := pipeline{
			next: func(ctx context.Context) (order, error) {
				made++
				return order{id: made}, coir.Sleep(ctx, time.Duration(s.Intn(3))*time.Millisecond)
			},
			ack: func(o order) { acked[o.id]++ },
			price: func(ctx context.Context, o order) (order, error) {
				return order{o.id, 100}, coir.Sleep(ctx, time.Millisecond)
			},
			store: func(ctx context.Context, o order) error {
				wait := time.Millisecond
				switch {
				case s.Fault("disk"):
					return errDisk
				case s.Fault("slow"):
					wait = time.Minute
				}
				if err := coir.Sleep(ctx, wait); err != nil {
					return err
				}
				if o.cents != 100 {
					s.Errorf("order %d has no price", o.id)
				}
				stored[o.id]++
				return nil
			},
			keep:  func(o order) { kept[o.id]++ },
			grace: time.Second,
		}
		ctx, stop := coir.WithCancel(ctx)
		var began, took time.Duration
		err := coir.Run(coir.Shield(ctx), func(_ context.Context, n *coir.Nursery) error {
			n.Go("signal", func(signal context.Context) error {
				defer stop()
				err := coir.Sleep(signal, time.Duration(s.Intn(8))*time.Millisecond)
				began = s.Now()
				return err
			})
			err := p.run(ctx)
			took = s.Now() - began
			return err
		})
		if err != nil && !errors.Is(err, coir.ErrTimeout) && !errors.Is(err, errDisk) {
			s.Errorf("it ended with %v", err)
		}
		if took > p.grace {
			s.Errorf("it took %v to stop", took)
		}
		for id := range made + 1 {
			if n := stored[id] + kept[id]; n > 1 || n < acked[id] {
				s.Errorf("order %d was acknowledged %d times, stored %d times and kept %d times",
					id, acked[id], stored[id], kept[id])
			}
		}
		s.Sometimes(err == nil && len(acked) > 1 && len(kept) == 0, "all that was accepted is stored")
		s.Sometimes(errors.Is(err, coir.ErrTimeout) && len(kept) > 1, "the time was not enough")
		s.Sometimes(errors.Is(err, errDisk) && len(kept) > 1, "a stage has failed")
		s.Sometimes(err == nil && made > len(acked), "an order came too late")
	}, sim.WithFaults("disk", "slow"))
}
