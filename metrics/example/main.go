// Command example is a shop whose metrics Prometheus scrapes:
//
//	go run ./example
//	curl localhost:2112/metrics
//
// Orders arrive faster than they are packed: the dashboard in ../grafana shows a full channel, and a lock that fibers
// wait for.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/desk"
	"github.com/coir-go/coir/locks"
	"github.com/coir-go/coir/metrics"
	"github.com/coir-go/coir/metrics/promcoir"
	"github.com/coir-go/coir/supervise"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

func main() {
	addr := flag.String("addr", "localhost:2112", "where to serve the metrics")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	l, err := net.Listen("tcp", *addr)
	if err == nil {
		fmt.Printf("see http://%s/metrics\n", l.Addr())
		err = run(ctx, l)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "example:", err)
		os.Exit(1) //nolint:gocritic // the process ends, so stop need not run
	}
}

// run serves the metrics of the shop until ctx ends, and closes l.
func run(ctx context.Context, l net.Listener) error {
	registry := prometheus.NewRegistry()
	registry.MustRegister(promcoir.New(metrics.New(coir.Default())))
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	coir.ListObjects(true) // metrics also of objects for which no fiber waits
	return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		n.Go("http", func(ctx context.Context) error {
			stop := context.AfterFunc(ctx, func() { _ = server.Close() })
			defer stop()
			if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return ctx.Err()
		}, coir.WithGoroutine())
		shop(n)
		return nil
	})
}

// shop takes orders, packs them, and delivers them for a receipt.
func shop(n *coir.Nursery) {
	orders := coir.NewChan[int](64, coir.WithName("orders"))
	parcels := coir.NewChan[int](0, coir.WithName("parcels"))
	scales := locks.NewMutex(coir.WithName("scales"))
	boxes := coir.NewPool(3, func(context.Context) (*box, error) { return new(box), nil }, nil, coir.WithName("boxes"))
	n.Go("intake", func(ctx context.Context) error {
		for order := 0; ; order++ {
			if err := orders.Send(ctx, order); err != nil {
				return err
			}
		}
	})
	for i := range 4 {
		n.Go("pack", func(ctx context.Context) error {
			for order, err := range orders.All(ctx) {
				if err != nil {
					return err
				}
				if err := pack(ctx, boxes, scales); err != nil {
					return err
				}
				if err := parcels.Send(ctx, order); err != nil {
					return err
				}
			}
			return nil
		}, coir.WithIndex(i))
	}
	receipts := desk.New[string](desk.WithName("receipts"))
	doors := coir.NewChan[desk.ID](1, coir.WithName("doors"))
	n.Go("customers", func(ctx context.Context) error {
		for id, err := range doors.All(ctx) {
			if err != nil {
				return err
			}
			if err := receipts.Resolve(id, "signed"); err != nil && !errors.Is(err, desk.ErrLate) {
				return err
			}
		}
		return nil
	})
	couriers := supervise.New([]supervise.Child{{Name: "courier", Run: func(ctx context.Context) error {
		for _, err := range parcels.All(ctx) {
			if err != nil {
				return err
			}
			if err := deliver(ctx, receipts, doors); err != nil {
				return err
			}
		}
		return nil
	}}}, supervise.WithName("couriers"))
	n.Go("couriers", couriers.Run)
}

// box is what an order is packed in. There are few, and they are used again.
type box struct{}

// pack puts an order into a box, and weighs it.
func pack(ctx context.Context, boxes *coir.Pool[*box], scales *locks.Mutex) error {
	b, err := boxes.Get(ctx)
	if err != nil {
		return err
	}
	return errors.Join(weigh(ctx, scales), boxes.Put(b))
}

// weigh takes 10 ms. Only one parcel can be weighed at a time.
func weigh(ctx context.Context, scales *locks.Mutex) error {
	if err := scales.Lock(ctx); err != nil {
		return err
	}
	defer scales.Unlock()
	return coir.Sleep(ctx, 10*time.Millisecond)
}

// deliver rings at a door, and waits until the customer has signed.
func deliver(ctx context.Context, receipts *desk.Desk[string], doors *coir.Chan[desk.ID]) error {
	t, err := receipts.OpenTimeout(ctx, time.Second)
	if err != nil {
		return err
	}
	defer t.Cancel()
	if err := doors.Send(ctx, t.ID()); err != nil {
		return err
	}
	_, err = t.Wait(ctx)
	return err
}
