//go:build unix

package nats_test

import (
	"context"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/nats"
)

// BenchmarkRate measures how many values of 1 KiB 128 fibers of one process send to 128 fibers of another, which
// acknowledge each value. It also measures the processor time of both ends and of all servers; they are in one process,
// and share its processors. The queues share one stream. Finally it measures tickets that one process opens and another
// completes.
//
//	go test -run '^$' -bench Rate -benchtime 10x .
//
// docs/SCALE.md has the results.
func BenchmarkRate(b *testing.B) {
	b.Run("durable", func(b *testing.B) { // on three servers that sync
		servers := cluster(b, [3]bool{true, true, true})
		a, z := transport(b, connect(b, servers...)), transport(b, connect(b, servers...))
		measureChannel(b, a, z, remote.Durable[[]byte])
	})
	b.Run("volatile", func(b *testing.B) {
		s := single(b, false)
		a := transport(b, connect(b, s), nats.WithReplicas(1))
		z := transport(b, connect(b, s), nats.WithReplicas(1))
		measureChannel(b, a, z, remote.Volatile[[]byte])
	})
	b.Run("ticket", func(b *testing.B) {
		service(b, 2, func(ctx context.Context, _ *coir.Nursery, r *replicas) error {
			x := &comparison{r: r, flight: inFlight, turns: 20}
			return measureRate(b, x.flight*x.turns, func() error {
				_, err := x.tickets(ctx, true)
				return err
			})
		})
	})
}

// measureChannel measures a channel from one transport to another.
func measureChannel(b *testing.B, from, to remote.Transport, open open) {
	b.Helper()
	const each = 10 // values of a fiber
	onChannel(b, from, to, open, func(ctx context.Context, ends [2]*remote.Chan[[]byte]) error {
		return measureRate(b, each*inFlight, func() error { return pass(ctx, ends, each) })
	})
}

// measureRate runs rounds, and reports the medians of their rates and of the processor time of a value.
func measureRate(b *testing.B, values int, round func() error) error {
	var rates, times []float64
	for i := 0; b.Loop() || i < 5; i++ {
		began, used := time.Now(), processorTime()
		if err := round(); err != nil {
			return err
		}
		if i > 0 { // the first one warms up
			rates = append(rates, float64(values)/time.Since(began).Seconds())
			times = append(times, float64((processorTime()-used).Nanoseconds())/1000/float64(values))
		}
	}
	slices.Sort(rates)
	slices.Sort(times)
	b.ReportMetric(rates[len(rates)/2], "values/s")
	b.ReportMetric(times[len(times)/2], "cpu-us/value")
	b.ReportMetric(0, "ns/op")
	return nil
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
