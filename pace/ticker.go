package pace

import (
	"context"
	"fmt"
	"time"

	"github.com/coir-go/coir"
)

// Ticker ticks at fixed intervals. If no caller waits, one tick is kept for the next caller; further ticks are counted
// as missed.
//
// A Ticker does not keep a program alive: package sim reports a deadlock if only ticks can happen. If other fibers
// sleep for a great number of ticks, a simulation may skip some of them.
//
// Any number of fibers and goroutines may use a Ticker; each tick goes to one of them.
type Ticker struct {
	timer *coir.Timer
	beat  beat
}

// NewTicker returns a Ticker that ticks every period, which must be positive. The first tick comes one period after the
// first call of Wait or WaitCase. [coir.WithName] gives it a name, which reports show.
func NewTicker(period time.Duration, opts ...coir.NameOption) *Ticker {
	if period <= 0 {
		panic(fmt.Sprintf("pace: NewTicker(%v): the period must be positive", period))
	}
	t := &Ticker{beat: beat{period: period}}
	all := []coir.TimerOption{coir.WithBackground()}
	for _, o := range opts {
		all = append(all, o)
	}
	t.timer = coir.NewTimer(&t.beat, all...)
	return t
}

// Wait waits for the next tick. It returns the number of ticks since the last tick that a caller got: 1, plus the
// number of missed ticks. It returns ctx's error if ctx ends first.
func (t *Ticker) Wait(ctx context.Context) (int, error) { return t.timer.Wait(ctx, 1) }

// WaitCase returns a case that happens at the next tick. It stores the result that Wait would return in *ticks, unless
// ticks is nil; 0 means that another caller got that tick. Use each case in one select only.
func (t *Ticker) WaitCase(ticks *int) coir.Case { return t.timer.WaitCase(ticks) }

// Period returns the time between two ticks.
func (t *Ticker) Period() time.Duration { return t.beat.period }

// String returns a short description of the ticker.
func (t *Ticker) String() string { return fmt.Sprintf("pace.Ticker(%v)", t.beat.period) }

// beat is the schedule of a Ticker. The ticks are at multiples of the period from the first call.
type beat struct {
	period  time.Duration
	last    time.Duration // the last tick that a caller received, or the time of the first call
	started bool
}

// Due implements coir.Schedule.
//
//go:norace
func (b *beat) Due(_ int, now time.Duration) time.Duration {
	if !b.started {
		b.started, b.last = true, now
	}
	if b.last > maxTime-b.period {
		return maxTime
	}
	return b.last + b.period
}

// Take implements coir.Schedule.
//
//go:norace
func (b *beat) Take(_ int, now time.Duration) int {
	n := (now - b.last) / b.period
	b.last += n * b.period
	return int(n)
}

// Words implements coir.Schedule.
func (b *beat) Words(int) string { return "for the next tick of" }

// maxTime is the largest time, which is never reached.
const maxTime = time.Duration(1<<63 - 1)
