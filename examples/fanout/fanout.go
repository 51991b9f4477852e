// Package fanout is an HTTP service that sends each request to several backends, and returns the answers that arrive in
// time.
//
// A request has a deadline. If a call is slow or fails, a second call follows after a delay. The first call that
// succeeds counts, and the other is cancelled. A limit on the number of calls is shared by all requests. The service
// stops gracefully: it answers the requests that it has accepted.
package fanout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/locks"
)

// Config has the parameters of a gateway.
type Config struct {
	Backends []func(ctx context.Context, query string) (string, error)
	Deadline time.Duration // the time limit of a request
	Hedge    time.Duration // the delay before the second call
	Calls    int           // how many calls may run at a time, over all requests
	Grace    time.Duration // how long running requests may take after the service is stopped
}

// Answer is the answer of one backend.
type Answer struct {
	Text  string `json:"text,omitempty"`
	Error string `json:"error,omitempty"`
}

// Gateway sends requests to backends.
type Gateway struct {
	Config
	calls *locks.Semaphore
}

// New makes a gateway.
func New(c Config) *Gateway {
	return &Gateway{Config: c, calls: locks.NewSemaphore(c.Calls, coir.WithName("calls"))}
}

// Ask asks all backends. It returns the answers and errors that arrive before the deadline, in the order of the
// backends.
func (g *Gateway) Ask(ctx context.Context, query string) []Answer {
	ctx, cancel := coir.WithTimeout(ctx, g.Deadline)
	defer cancel()
	answers := make([]Answer, len(g.Backends))
	_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
		for i := range g.Backends {
			n.Go("backend", func(ctx context.Context) error {
				text, err := g.hedged(ctx, i, query)
				answers[i].Text = text
				if err != nil {
					answers[i].Error = err.Error()
				}
				return nil // an error must not cancel the other calls
			}, coir.WithIndex(i))
		}
		return nil
	})
	return answers
}

// hedged calls a backend, and calls it again after a delay unless the first call has succeeded.
func (g *Gateway) hedged(ctx context.Context, backend int, query string) (string, error) {
	call := func(ctx context.Context) (string, error) {
		if err := g.calls.Acquire(ctx, 1); err != nil {
			return "", err
		}
		defer g.calls.Release(1)
		return g.Backends[backend](ctx, query)
	}
	return coir.Race(ctx, call, func(ctx context.Context) (string, error) {
		if err := coir.Sleep(ctx, g.Hedge); err != nil {
			return "", err
		}
		return call(ctx)
	})
}

// ServeHTTP replies with the answers of the backends as JSON. The status is 502 if no backend has answered.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answers := g.Ask(r.Context(), r.URL.Query().Get("q"))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status(answers))
	_ = json.NewEncoder(w).Encode(answers) // an error means that the client has left
}

func status(answers []Answer) int {
	for _, a := range answers {
		if a.Error == "" {
			return http.StatusOK
		}
	}
	return http.StatusBadGateway
}

// Serve accepts connections until ctx ends. Then it answers the requests that it has accepted, and returns nil if that
// takes no longer than Grace.
func (g *Gateway) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{Handler: g, ReadHeaderTimeout: time.Minute}
	return coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
		n.Go("serve", func(context.Context) error {
			if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		}, coir.WithGoroutine())
		n.Go("stop", func(ctx context.Context) error {
			_ = coir.WaitCancel(ctx) // returns when ctx ends or the listener fails
			ctx, cancel := coir.WithTimeout(coir.Shield(ctx), g.Grace)
			defer cancel()
			if err := srv.Shutdown(ctx); err != nil {
				return errors.Join(err, srv.Close())
			}
			return nil
		}, coir.WithGoroutine())
		return nil
	})
}

// Backend returns a backend that asks a web server.
func Backend(client *http.Client, address string) func(ctx context.Context, query string) (string, error) {
	return func(ctx context.Context, query string) (string, error) {
		return coir.Blocking(ctx, func() (string, error) {
			return get(ctx, client, address+"?q="+url.QueryEscape(query))
		})
	}
}

func get(ctx context.Context, client *http.Client, address string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", address, resp.Status)
	}
	return string(text), err
}
