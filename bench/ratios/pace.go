package main

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/pace"
)

// What tickers and limiters cost.
//
// The rate is fixed, so tickers are compared by processor time. There are many tickers; each ticks on its own schedule,
// and a fiber or goroutine waits for it. A limiter is measured where it limits nothing, as for most calls of a service:
// there are always enough tokens.

const (
	tickers    = 200
	tickPeriod = 2 * time.Millisecond
	ticksEach  = 200
)

func tickerFibers() side {
	rt := coir.NewRuntime()
	return side{
		measure: func() sample {
			return tickTime(func(lead time.Duration) {
				run(rt, func(_ context.Context, nur *coir.Nursery) error {
					for i := range tickers {
						nur.Go("ticker", func(ctx context.Context) error {
							if err := coir.Sleep(ctx, time.Duration(i)*lead); err != nil {
								return err
							}
							t := pace.NewTicker(tickPeriod)
							for n := 0; n < ticksEach; {
								got, err := t.Wait(ctx)
								if err != nil {
									return err
								}
								n += got
							}
							return nil
						})
					}
					return nil
				})
			})
		},
		close: func() { shut(rt) },
	}
}

func tickerGoroutines() side {
	return side{measure: func() sample {
		return tickTime(func(lead time.Duration) {
			var wg sync.WaitGroup
			for i := range tickers {
				wg.Go(func() {
					time.Sleep(time.Duration(i) * lead)
					t := time.NewTicker(tickPeriod)
					defer t.Stop()
					for range ticksEach {
						<-t.C
					}
				})
			}
			wg.Wait()
		})
	}}
}

// tickTime returns the cost of one tick of fn. Each ticker begins lead after the one before.
func tickTime(fn func(lead time.Duration)) sample {
	return sampleOf(tickers*ticksEach, true, func() { fn(tickPeriod / tickers) })
}

// plenty exceeds the tokens that a round takes.
const plenty = 1 << 30

func limiterFiber() side {
	l := pace.NewLimiter(time.Nanosecond, plenty)
	return onRuntime(func(ctx context.Context, _ *coir.Nursery, n int) error {
		for range n {
			if err := l.Wait(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

func limiterGoroutine() side {
	l := rate.NewLimiter(rate.Every(time.Nanosecond), plenty)
	return side{loop: func(n int) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		for range n {
			if err := l.Wait(ctx); err != nil {
				panic("the measured program failed: " + err.Error())
			}
		}
	}}
}

func tryLimiter() side {
	l := pace.NewLimiter(time.Nanosecond, plenty)
	return onRuntime(func(_ context.Context, _ *coir.Nursery, n int) error {
		for range n {
			if !l.TryWaitN(1) {
				panic("no token")
			}
		}
		return nil
	})
}

func tryRate() side {
	l := rate.NewLimiter(rate.Every(time.Nanosecond), plenty)
	return side{loop: func(n int) {
		for range n {
			if !l.Allow() {
				panic("no token")
			}
		}
	}}
}
