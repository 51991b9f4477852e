// Command cmd serves package webhook on localhost:8080. It is its own provider, which converts text to upper case after
// a second.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/desk"
	"github.com/coir-go/coir/examples/webhook"
)

const address = "localhost:8080"

func main() {
	stop, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	if err := coir.Run(stop, serve); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // the process ends, so cancel need not run
	}
}

func serve(_ context.Context, n *coir.Nursery) error {
	s := webhook.New(webhook.Config{
		Limit: 5 * time.Second, Jobs: 1000,
		Start: func(_ context.Context, job string, id desk.ID) error {
			n.Go("provider", func(ctx context.Context) error { return provide(ctx, job, id) }, coir.WithGoroutine())
			return nil
		},
	})
	server := &http.Server{Addr: address, Handler: s.Handler(), ReadHeaderTimeout: time.Second}
	n.Go("server", func(ctx context.Context) error {
		defer context.AfterFunc(ctx, func() { _ = server.Close() })()
		if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	}, coir.WithGoroutine())
	return nil
}

// provide does a job as an external provider would, and calls back.
func provide(ctx context.Context, job string, id desk.ID) error {
	if err := coir.Sleep(ctx, time.Second); err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/callbacks/"+id.String(),
		strings.NewReader(strings.ToUpper(job)))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
