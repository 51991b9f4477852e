package stream

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/coir-go/coir"
)

// Meter counts the elements that pass through a [Monitor]. The zero Meter is ready to use. Any goroutine may read it
// while the stream runs. If several Monitors share a Meter, it counts their elements together.
type Meter struct {
	elements, failures, runs   atomic.Uint64
	began, last, input, output atomic.Int64 // nanoseconds of coir.Now; began is 1 more, so that 0 means unset
}

// MeterStats is a snapshot of a [Meter]. Times are as returned by [coir.Now], on the clock of the run.
type MeterStats struct {
	Elements uint64        // elements that have passed
	Failures uint64        // runs that ended with an error
	Running  int           // runs that have not ended
	Since    time.Duration // when the first run began
	Last     time.Duration // when the last element came; 0 before the first
	Input    time.Duration // how long the stage waited for elements
	Output   time.Duration // how long the stage waited for the consumer
}

// Rate returns the number of elements per second between the beginning and now, which is a time from [coir.Now].
func (m MeterStats) Rate(now time.Duration) float64 {
	if now <= m.Since {
		return 0
	}
	return float64(m.Elements) / (now - m.Since).Seconds()
}

// Lag returns the time since the last element, or since the beginning if there was no element.
func (m MeterStats) Lag(now time.Duration) time.Duration { return max(now-max(m.Last, m.Since), 0) }

// Stats returns a snapshot of the counters.
func (m *Meter) Stats() MeterStats {
	return MeterStats{
		Elements: m.elements.Load(),
		Failures: m.failures.Load(),
		Running:  int(m.runs.Load()),
		Since:    time.Duration(max(m.began.Load()-1, 0)),
		Last:     time.Duration(m.last.Load()),
		Input:    time.Duration(m.input.Load()),
		Output:   time.Duration(m.output.Load()),
	}
}

// Monitor counts the elements that pass through it, and measures how long it waits for its input and for its consumer.
// It reads the clock twice for each chunk of elements; if the elements do not come in chunks, twice for each element.
//
//	              a-b-c-|
//	Monitor(m)    a-b-c-|   m.Stats().Elements is 3
func Monitor[T any](s Stream[T], m *Meter) Stream[T] {
	return stage(fused(s.plan, "Monitor"), func(ctx context.Context, d *demand, push func([]T) bool) error {
		m.runs.Add(1)
		defer m.runs.Add(^uint64(0))
		left := int64(coir.Now(ctx))
		m.began.CompareAndSwap(0, left+1)
		err := s.start(ctx, d, func(vs []T) bool {
			came := int64(coir.Now(ctx))
			m.input.Add(came - left)
			m.last.Store(came)
			m.elements.Add(uint64(len(vs)))
			on := push(vs)
			left = int64(coir.Now(ctx))
			m.output.Add(left - came)
			return on
		})
		if err != nil {
			m.failures.Add(1)
		}
		return err
	})
}
