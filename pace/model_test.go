package pace_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/pace"
	"github.com/coir-go/coir/sim"
)

// call is one use of a limiter in a random history. Times are in milliseconds since the history began.
type call struct {
	at, n  int
	try    bool // TryWaitN
	giveUp int  // when it is cancelled; 0 for never
	known  bool // the cancellation is a deadline, which the limiter can see
}

// outcome is how a call ended.
type outcome struct {
	at int
	ok bool
}

// bucketModel is a textbook limiter: it advances millisecond by millisecond and has a slice as its queue. It returns
// false if two events whose order matters happen in the same millisecond.
func bucketModel(interval, burst int, calls []call) (got []outcome, certain bool) {
	got = make([]outcome, len(calls))
	credit, certain := burst*interval, true // in fractions of a token
	var queue []int
	serve := func(t int) (served bool) {
		for len(queue) > 0 {
			i := queue[0]
			c := calls[i]
			need := c.n*interval - credit
			switch {
			case need <= 0:
				certain = certain && c.giveUp != t
				credit -= c.n * interval
				got[i] = outcome{t, true}
			case c.known && t+need > c.giveUp:
				got[i] = outcome{t, false}
			default:
				return served
			}
			queue, served = queue[1:], true
		}
		return served
	}
	for t, ended := 0, 0; ended < len(calls) || len(queue) > 0; t++ {
		served := false
		if t > 0 {
			credit = min(burst*interval, credit+1)
			served = serve(t)
		}
		for k := 0; k < len(queue); k++ {
			if i := queue[k]; calls[i].giveUp == t {
				got[i] = outcome{t, false}
				queue = append(queue[:k:k], queue[k+1:]...)
				certain = certain && !served && (k > 0 || len(queue) == 0)
				serve(t)
				k = -1
			}
		}
		for ; ended < len(calls) && calls[ended].at == t; ended++ {
			c := calls[ended]
			if !c.try {
				queue = append(queue, ended)
				serve(t)
				continue
			}
			certain = certain && !served
			if got[ended].at = t; len(queue) == 0 && credit >= c.n*interval {
				credit -= c.n * interval
				got[ended].ok = true
			}
		}
	}
	return got, certain
}

// In random histories of calls that wait, try and give up, a limiter gives tokens at the same times as the model.
func TestLimiterAgainstAModel(t *testing.T) {
	const ms = time.Millisecond
	unsure := 0
	holds(t, func(ctx context.Context, s *sim.Sim) {
		interval, burst := 2+2*s.Intn(5), 1+s.Intn(4) // calls and tokens come in even milliseconds
		calls := make([]call, 2+s.Intn(8))
		at := 0
		for i := range calls {
			at += 2 + 2*s.Intn(8)*s.Intn(3)
			c := call{at: at, n: 1 + s.Intn(burst), try: s.Intn(4) == 0}
			if s.Intn(3) == 0 {
				c.giveUp, c.known = at+1+2*s.Intn(12), s.Intn(2) == 0
			}
			calls[i] = c
		}
		want, certain := bucketModel(interval, burst, calls)
		if !certain {
			unsure++
			return
		}
		got := make([]outcome, len(calls))
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			limiter := pace.NewLimiter(time.Duration(interval)*ms, burst, coir.WithName("api"))
			for i, c := range calls {
				n.Go("call", func(ctx context.Context) error {
					if err := coir.Sleep(ctx, time.Duration(c.at)*ms); err != nil {
						return err
					}
					var ok bool
					switch in := ctx; {
					case c.try:
						ok = limiter.TryWaitN(c.n)
					default:
						if c.giveUp > 0 {
							var cancel context.CancelFunc
							if wait := time.Duration(c.giveUp-c.at) * ms; c.known {
								in, cancel = coir.WithTimeout(ctx, wait)
							} else {
								in, cancel = coir.WithCancel(ctx)
								n.Go("cancel", func(ctx context.Context) error {
									err := coir.Sleep(ctx, wait)
									cancel()
									return err
								}, coir.WithIndex(i))
							}
							defer cancel()
						}
						err := limiter.WaitN(in, c.n)
						if ok = err == nil; !ok && !errors.Is(err, context.Canceled) && !errors.Is(err, coir.ErrTimeout) {
							return err
						}
					}
					got[i] = outcome{int(s.Now() / ms), ok}
					return nil
				}, coir.WithIndex(i))
			}
			return nil
		})
		if text := fmt.Sprint(got); err != nil || text != fmt.Sprint(want) {
			s.Errorf("interval %d, burst %d, calls %+v: %v, and the model says %v (%v)", interval, burst, calls, text, want, err)
		}
	}, sim.WithStrategy(sim.Random))
	if unsure > 2000 {
		t.Errorf("%d of the histories did not count", unsure)
	}
}

// A ticker returns the number of ticks since the last one that was received, at the next tick or, if that has passed,
// immediately.
func TestTickerAgainstAModel(t *testing.T) {
	const ms = time.Millisecond
	holds(t, func(ctx context.Context, s *sim.Sim) {
		period := 1 + s.Intn(7)
		ticker := pace.NewTicker(time.Duration(period)*ms, coir.WithName("tick"))
		now, last := 0, 0 // of the model; last is the last tick received
		for range 1 + s.Intn(10) {
			var got int
			var err error
			limit := 0
			switch s.Intn(3) {
			case 0:
				got, err = ticker.Wait(ctx)
			case 1:
				_, err = coir.Select(ctx, ticker.WaitCase(&got))
			case 2:
				limit = 1 + s.Intn(2*period)
				_, err = coir.SelectPriority(ctx, ticker.WaitCase(&got), coir.After(time.Duration(limit)*ms))
			}
			want := 0
			if due := max(now, last+period); limit > 0 && due > now+limit {
				now += limit
			} else {
				now, want = due, (due-last)/period
				last += want * period
			}
			if err != nil || got != want || s.Now() != time.Duration(now)*ms {
				s.Errorf("period %d: %d ticks at %v, want %d at %dms (%v)", period, got, s.Now(), want, now, err)
				return
			}
			work := s.Intn(3) * s.Intn(3*period)
			if err := coir.Sleep(ctx, time.Duration(work)*ms); err != nil {
				return
			}
			now += work
		}
	}, sim.WithStrategy(sim.Random))
}

// If several callers use a ticker, each tick goes to one of them.
func TestTicksAreShared(t *testing.T) {
	holds(t, func(ctx context.Context, s *sim.Sim) {
		ticker := pace.NewTicker(time.Second)
		var sum atomic.Int64 // atomic, because the ticker orders no memory
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			for i := range 3 {
				n.Go("user", func(ctx context.Context) error {
					for {
						var got int
						var err error
						if i == 0 {
							_, err = coir.Select(ctx, ticker.WaitCase(&got))
						} else {
							got, err = ticker.Wait(ctx)
						}
						if err != nil {
							return err
						}
						sum.Add(int64(got))
					}
				})
			}
			err := coir.Sleep(ctx, 10*time.Second+time.Millisecond)
			n.Cancel(nil)
			return err
		})
		if sum.Load() != 10 {
			s.Errorf("%d ticks in 10 seconds (%v)", sum.Load(), err)
		}
	})
}
