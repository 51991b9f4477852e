package nats_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/nats"
)

// BenchmarkBeside compares channels with nats.go alone, in alternating rounds with equally many values of 1 KiB. On
// both sides the values of a round are sent on one connection, and received and removed on another one. In coir, 128
// fibers send, and 128 receive.
//
//		go test -run '^$' -bench Beside -benchtime 10x .
//
//	  - volatile: beside Publish and Subscribe. A Send of coir has an answer, a Publish has none.
//	  - durable: beside PublishAsync and Consume, on three servers that sync, in a stream whose messages are removed
//	    when they are acknowledged.
//	  - one-by-one: the same channel beside Publish of package jetstream, each after the answer to the one before.
func BenchmarkBeside(b *testing.B) {
	b.Run("volatile", func(b *testing.B) {
		s := single(b, false)
		nc, far := connect(b, s), connect(b, s)
		a, z := transport(b, nc, nats.WithReplicas(1)), transport(b, far, nats.WithReplicas(1))
		got := make(chan struct{}, 10*inFlight*inFlight)
		if _, err := far.Subscribe("bare", func(*client.Msg) { got <- struct{}{} }); err != nil {
			b.Fatal(err)
		}
		if err := far.Flush(); err != nil {
			b.Fatal(err)
		}
		besideChannel(b, a, z, remote.Volatile[[]byte], 100, func(_ context.Context, values int) error {
			return passed(got, values, func(value []byte) error { return nc.Publish("bare", value) })
		})
	})
	b.Run("durable", func(b *testing.B) {
		p := newStored(b)
		besideChannel(b, p.a, p.z, remote.Durable[[]byte], 10, func(_ context.Context, values int) error {
			var acks []jetstream.PubAckFuture
			err := passed(p.got, values, func(value []byte) error {
				ack, err := p.js.PublishAsync("bare", value)
				acks = append(acks, ack)
				return err
			})
			for _, ack := range acks {
				select {
				case <-ack.Ok():
				case e := <-ack.Err():
					err = e
				}
			}
			return err
		})
	})
	b.Run("one-by-one", func(b *testing.B) {
		p := newStored(b)
		besideChannel(b, p.a, p.z, remote.Durable[[]byte], 1, func(ctx context.Context, values int) error {
			return passed(p.got, values, func(value []byte) error {
				_, err := p.js.Publish(ctx, "bare", value)
				return err
			})
		})
	})
}

// passed sends values, and returns when all are received.
func passed(got <-chan struct{}, values int, send func([]byte) error) error {
	value := make([]byte, 1024)
	for range values {
		if err := send(value); err != nil {
			return err
		}
	}
	for i := range values {
		select {
		case <-got:
		case <-time.After(time.Minute):
			return fmt.Errorf("%d of %d values came", i, values)
		}
	}
	return nil
}

// stored is a cluster of three servers that sync, with a stream and a consumer that only nats.go uses.
type stored struct {
	a, z *nats.Transport
	js   jetstream.JetStream
	got  chan struct{}
}

func newStored(b *testing.B) *stored {
	b.Helper()
	servers := cluster(b, [3]bool{true, true, true})
	nc, far := connect(b, servers...), connect(b, servers...)
	p := &stored{a: transport(b, nc), z: transport(b, far), got: make(chan struct{}, 100*inFlight)}
	var err error
	if p.js, err = jetstream.New(nc); err != nil {
		b.Fatal(err)
	}
	_, err = p.js.CreateStream(b.Context(), jetstream.StreamConfig{
		Name: "bare", Subjects: []string{"bare"}, Storage: jetstream.FileStorage, Replicas: 3, Retention: jetstream.WorkQueuePolicy,
	})
	if err != nil {
		b.Fatal(err)
	}
	js, err := jetstream.New(far)
	if err != nil {
		b.Fatal(err)
	}
	consumer, err := js.CreateConsumer(b.Context(), "bare", jetstream.ConsumerConfig{
		Durable: "bare", AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: 100 * inFlight,
	})
	if err != nil {
		b.Fatal(err)
	}
	consuming, err := consumer.Consume(func(m jetstream.Msg) {
		_ = m.Ack()
		p.got <- struct{}{}
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(consuming.Stop)
	return p
}

// besideChannel compares rounds of a channel, in which each fiber sends some values, with those of bare.
func besideChannel(b *testing.B, from, to remote.Transport, open open, each int, bare func(context.Context, int) error) {
	b.Helper()
	onChannel(b, from, to, open, func(ctx context.Context, ends [2]*remote.Chan[[]byte]) error {
		return beside(b, each*inFlight,
			func() (time.Duration, error) { return timed(func() error { return pass(ctx, ends, each) }) },
			func() (time.Duration, error) { return timed(func() error { return bare(ctx, each*inFlight) }) })
	})
}

func timed(f func() error) (time.Duration, error) {
	began := time.Now()
	err := f()
	return time.Since(began), err
}

// beside runs rounds of both sides in turns, with the given number of operations, and prints what bench/ratios prints:
// the cost of both, and the median and the quartiles of the ratio of their rates.
func beside(b *testing.B, operations int, mine, other func() (time.Duration, error)) error {
	b.Helper()
	var ours, theirs, ratios []float64
	for i := 0; b.Loop(); i++ {
		m, err := mine()
		if err != nil {
			return err
		}
		o, err := other()
		if err != nil {
			return err
		}
		if i == 0 {
			continue // it warms up
		}
		n := float64(operations)
		ours, theirs = append(ours, m.Seconds()/n), append(theirs, o.Seconds()/n)
		ratios = append(ratios, o.Seconds()/m.Seconds())
	}
	if len(ratios) == 0 {
		return errors.New("the first round warms up: -benchtime must be 2x or more")
	}
	for _, all := range [][]float64{ours, theirs, ratios} {
		slices.Sort(all)
	}
	at := func(all []float64, q float64) float64 { return all[int(q*float64(len(all)-1))] }
	b.Logf("%s coir=%.1fus other=%.1fus ratio=%.3f spread=%.3f..%.3f (of rates, in %d rounds)", b.Name(),
		1e6*at(ours, 0.5), 1e6*at(theirs, 0.5), at(ratios, 0.5), at(ratios, 0.25), at(ratios, 0.75), len(ratios))
	b.ReportMetric(at(ratios, 0.5), "ratio")
	b.ReportMetric(0, "ns/op")
	return nil
}

// onChannel opens both ends of a channel from one transport to another.
func onChannel(b *testing.B, from, to remote.Transport, open open,
	f func(ctx context.Context, ends [2]*remote.Chan[[]byte]) error) {
	b.Helper()
	err := coir.Run(b.Context(), func(ctx context.Context, n *coir.Nursery) error {
		var ends [2]*remote.Chan[[]byte]
		for i, t := range []remote.Transport{from, to} {
			var err error
			if ends[i], err = open(ctx, n, t, "rate", 10*inFlight, remote.WithPrefetch(inFlight)); err != nil {
				return err
			}
			defer ends[i].Leave()
		}
		return f(ctx, ends)
	})
	if err != nil {
		b.Fatal(err)
	}
}

const inFlight = 128 // fibers that send; as many receive

// open is remote.Durable or remote.Volatile.
type open func(ctx context.Context, n *coir.Nursery, t remote.Transport, name string, capacity int,
	opts ...remote.Option) (*remote.Chan[[]byte], error)

// pass sends values from one end to the other, the given number by each fiber, and returns when all are removed.
func pass(ctx context.Context, ends [2]*remote.Chan[[]byte], each int) error {
	value := make([]byte, 1024)
	return coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
		for range inFlight {
			n.Go("sender", func(ctx context.Context) error {
				for range each {
					if err := ends[0].Send(ctx, value); err != nil {
						return err
					}
				}
				return nil
			})
			n.Go("receiver", func(ctx context.Context) error {
				for range each {
					it, err := ends[1].Recv(ctx)
					if err == nil {
						err = it.Ack(ctx)
					}
					if err != nil {
						return err
					}
				}
				return nil
			})
		}
		return nil
	})
}
