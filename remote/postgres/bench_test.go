//go:build unix

package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/postgres"
)

// The benchmarks have two sides: channels, and the same statements by hand with pgx. Both run in each iteration, so
// that a machine that is slow for a while is slow for both. They report the ratio of the throughputs.
//
//	go test -run '^$' -bench . -benchtime 20x
//
// A payload has 128 bytes.

var payload = make([]byte, 128)

// raw is the codec of values that are bytes.
type raw struct{}

func (raw) Marshal(v any) ([]byte, error) { return v.([]byte), nil }

func (raw) Unmarshal(data []byte, to any) error {
	*to.(*[]byte) = data
	return nil
}

// race measures both sides in turns. It reports the median ratio of the pairs, and the rate of the channels.
func race(b *testing.B, values int, channels, hand func() error) {
	b.Helper()
	var ratios, rates []float64
	side := func(f func() error) time.Duration { // not in a fiber: statements by hand would hold its worker
		took, err := coir.Blocking(b.Context(), func() (time.Duration, error) {
			began := time.Now()
			err := f()
			return time.Since(began), err
		})
		if err != nil {
			b.Fatal(err)
		}
		return took
	}
	for b.Loop() {
		h, c := side(hand), side(channels)
		ratios = append(ratios, float64(h)/float64(c))
		rates = append(rates, float64(values)/c.Seconds())
	}
	b.ReportMetric(middle(ratios), "of-hand")
	b.ReportMetric(middle(rates), "values/s")
	b.ReportMetric(0, "ns/op")
}

func middle(xs []float64) float64 {
	slices.Sort(xs)
	return xs[len(xs)/2]
}

// BenchmarkSend sends from several fibers at the same time. By hand, one statement sends as many values.
func BenchmarkSend(b *testing.B) {
	for _, fibers := range []int{1, 100} {
		b.Run(fmt.Sprint(fibers), func(b *testing.B) {
			pool := prepared(b, database(b))
			tr := transport(b, pool)
			rounds := 2000 / (fibers + 19)
			inChannel(b, tr, "q", func(ctx context.Context, c *remote.Chan[[]byte]) error {
				var queue, next int64
				if err := pool.QueryRow(ctx, "select its_id from coir.open('hand', 1000000000)").Scan(&queue); err != nil {
					return err
				}
				race(b, rounds*fibers, func() error { return send(ctx, c, fibers, rounds) }, func() error {
					for range rounds {
						if err := publishByHand(ctx, pool, queue, &next, fibers); err != nil {
							return err
						}
					}
					return nil
				})
				return nil
			})
		})
	}
}

// send sends values from fibers, the same number from each.
func send(ctx context.Context, c *remote.Chan[[]byte], fibers, rounds int) error {
	return coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
		for i := range fibers {
			n.Go("sender", func(ctx context.Context) error {
				for range rounds {
					if err := c.Send(ctx, payload); err != nil {
						return err
					}
				}
				return nil
			}, coir.WithIndex(i))
		}
		return nil
	})
}

// publishByHand is the statement of Publish.
func publishByHand(ctx context.Context, pool *pgxpool.Pool, queue int64, next *int64, n int) error {
	senders, numbers, contents := make([]int64, n), make([]int64, n), make([][]byte, n)
	for i := range n {
		*next++
		senders[i], numbers[i], contents[i] = 1, *next, payload
	}
	var ended, wakes bool
	var set string
	var refused []int
	return pool.QueryRow(ctx, "select * from coir.publish($1, coir.settings(), 120, $2, $3, $4)",
		queue, senders, numbers, contents).Scan(&ended, &set, &refused, &wakes)
}

// inChannel calls f with a channel that is never full.
func inChannel(b *testing.B, tr *postgres.Transport, name string,
	f func(ctx context.Context, c *remote.Chan[[]byte]) error,
) {
	b.Helper()
	err := coir.Run(b.Context(), func(ctx context.Context, n *coir.Nursery) error {
		c, err := durable[[]byte](ctx, n, tr, name, 1_000_000_000, remote.WithCodec(raw{}), remote.WithPrefetch(100))
		if err != nil {
			return err
		}
		defer c.Leave()
		return f(ctx, c)
	})
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkRecvTx sends 100 values and receives them, with an effect of one statement. By hand, a transaction has the
// same statements; one statement stores the values, and another leases them.
func BenchmarkRecvTx(b *testing.B) {
	pool := prepared(b, database(b))
	exec(b, pool, "create table effect (data bytea)")
	tr := transport(b, pool)
	const values = 100
	effect := func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "insert into effect values ($1)", payload)
		return err
	}
	inChannel(b, tr, "q", func(ctx context.Context, c *remote.Chan[[]byte]) error {
		var hand, next int64
		if err := pool.QueryRow(ctx, "select its_id from coir.open('hand', 1000000000)").Scan(&hand); err != nil {
			return err
		}
		race(b, values, func() error {
			if err := send(ctx, c, values, 1); err != nil { // wakes the receiver
				return err
			}
			for range values {
				err := postgres.RecvTx(ctx, c, func(ctx context.Context, tx pgx.Tx, _ *remote.Item[[]byte]) error {
					return effect(ctx, tx)
				})
				if err != nil {
					return err
				}
			}
			return nil
		}, func() error {
			if err := publishByHand(ctx, pool, hand, &next, values); err != nil {
				return err
			}
			rows, err := pool.Query(ctx, "select seq from coir.pull($1, 100, 30)", hand)
			if err != nil {
				return err
			}
			seqs, err := pgx.CollectRows(rows, pgx.RowTo[int64])
			if err != nil {
				return err
			}
			for _, seq := range seqs {
				err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
					if _, err := tx.Exec(ctx, "delete from coir.message where queue = $1 and seq = $2", hand, seq); err != nil {
						return err
					}
					return effect(ctx, tx)
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
		return nil
	})
}

// BenchmarkWake measures the time from Send until a waiting receiver has the value.
func BenchmarkWake(b *testing.B) {
	dsn := database(b)
	ts := []*postgres.Transport{transport(b, prepared(b, dsn)), transport(b, connect(b, dsn))}
	var times []float64
	err := coir.Run(b.Context(), func(ctx context.Context, n *coir.Nursery) error {
		var ends []*remote.Chan[[]byte]
		for _, tr := range ts {
			c, err := durable[[]byte](ctx, n, tr, "q", 100, remote.WithCodec(raw{}))
			if err != nil {
				return err
			}
			defer c.Leave()
			ends = append(ends, c)
		}
		for b.Loop() {
			received := n.Go("receiver", func(ctx context.Context) error {
				it, err := ends[1].Recv(ctx)
				if err != nil {
					return err
				}
				return it.Ack(ctx)
			})
			if err := coir.Sleep(ctx, 100*time.Millisecond); err != nil { // so that the receiver is waiting
				return err
			}
			began := time.Now()
			if err := ends[0].Send(ctx, payload); err != nil {
				return err
			}
			if err := received.Wait(ctx); err != nil {
				return err
			}
			times = append(times, float64(time.Since(began).Microseconds())/1000)
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(middle(times), "p50-ms")
	b.ReportMetric(times[len(times)*9/10], "p90-ms")
	b.ReportMetric(0, "ns/op")
}
