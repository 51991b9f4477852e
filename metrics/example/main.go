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
	"github.com/coir-go/coir/locks"
	"github.com/coir-go/coir/metrics"
	"github.com/coir-go/coir/metrics/promcoir"
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

// shop takes orders, and packs them.
func shop(n *coir.Nursery) {
	orders := coir.NewChan[int](64, coir.WithName("orders"))
	parcels := coir.NewChan[int](0, coir.WithName("parcels"))
	scales := locks.NewMutex(coir.WithName("scales"))
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
				if err := weigh(ctx, scales); err != nil {
					return err
				}
				if err := parcels.Send(ctx, order); err != nil {
					return err
				}
			}
			return nil
		}, coir.WithIndex(i))
	}
	n.Go("deliver", func(ctx context.Context) error {
		for _, err := range parcels.All(ctx) {
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// weigh takes 10 ms. Only one parcel can be weighed at a time.
func weigh(ctx context.Context, scales *locks.Mutex) error {
	if err := scales.Lock(ctx); err != nil {
		return err
	}
	defer scales.Unlock()
	return coir.Sleep(ctx, 10*time.Millisecond)
}
