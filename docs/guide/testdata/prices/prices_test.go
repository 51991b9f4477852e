// Package prices has the code of docs/guide/testing.md. TestPrices fails: that is what the guide is about.
package prices

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/sim"
)

type Prices struct {
	Ask      func(ctx context.Context, item string) (int, error) // the backend
	Patience time.Duration
	Known    map[string]int
}

func (p *Prices) Of(ctx context.Context, item string) (price int, err error) {
	answer := coir.NewChan[int](0, coir.WithName("answer"))
	err = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		n.Go("ask", func(ctx context.Context) error {
			v, err := p.Ask(ctx, item)
			if err != nil {
				return err
			}
			return answer.Send(ctx, v)
		})
		v, err := answer.RecvTimeout(ctx, p.Patience)
		if errors.Is(err, coir.ErrTimeout) {
			v, err = p.Known[item], nil // an old price is better than none
		}
		price = v
		return err
	})
	return price, err
}

func TestPrices(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		p := &Prices{Patience: time.Second, Known: map[string]int{"tea": 3}}
		p.Ask = func(ctx context.Context, _ string) (int, error) {
			return 4, coir.Sleep(ctx, time.Duration(s.Intn(3))*time.Second)
		}
		price, err := p.Of(ctx, "tea")
		if err != nil || price != 3 && price != 4 {
			s.Errorf("tea is %d, %v", price, err)
		}
		s.Sometimes(price == 3, "the old price")
		s.Sometimes(price == 4, "the new price")
	})
}

// A place for the answer that comes too late.
func TestThePlaceForTheAnswer(t *testing.T) {
	answer := coir.NewChan[int](1, coir.WithName("answer"))
	if err := answer.TrySend(4); err != nil {
		t.Error(err)
	}
}

func program(ctx context.Context, s *sim.Sim) {
	p := &Prices{Patience: time.Second, Known: map[string]int{"tea": 3}}
	p.Ask = func(ctx context.Context, _ string) (int, error) {
		return 4, coir.Sleep(ctx, time.Duration(s.Intn(3))*time.Second)
	}
	if price, err := p.Of(ctx, "tea"); err != nil || price != 3 && price != 4 {
		s.Errorf("tea is %d, %v", price, err)
	}
}

func FuzzPrices(f *testing.F) {
	f.Fuzz(func(t *testing.T, schedule []byte) {
		if f := sim.Drawn(sim.Bytes(schedule), program); f != nil {
			t.Fatal(f)
		}
	})
}

func TestStrategies(t *testing.T) {
	program := func(ctx context.Context, _ *sim.Sim) { coir.Point(ctx) }
	sim.Test(t, program, sim.WithStrategy(sim.Random))
	sim.Test(t, program, sim.WithStrategy(func(uint64) sim.Strategy { return sim.Exhaustive(2) }))
	sim.Test(t, program, sim.WithStrategy(func(seed uint64) sim.Strategy { return sim.PCT(seed, 3) }))
}

func TestPoint(t *testing.T) {
	sim.Test(t, func(ctx context.Context, _ *sim.Sim) {
		var owner atomic.Int64
		take := func(me int64) {
			if owner.Load() == 0 {
				coir.Point(ctx)
				owner.Store(me) // two fibers may get here
			}
		}
		take(1)
	})
}

func TestFault(t *testing.T) {
	errBroken := errors.New("broken")
	sim.Test(t, func(_ context.Context, s *sim.Sim) {
		orders := coir.NewChan[int](1)
		if s.Fault("abort") {
			orders.Abort(errBroken)
		}
	}, sim.WithFaults("abort"))
}

var p = &Prices{
	Ask:      func(context.Context, string) (int, error) { return 4, nil },
	Patience: time.Second,
}

func TestPricesInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := coir.Run(t.Context(), func(ctx context.Context, _ *coir.Nursery) error {
			price, err := p.Of(ctx, "tea") // its time limits take no real time
			if price != 4 {
				t.Errorf("tea is %d", price)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}
