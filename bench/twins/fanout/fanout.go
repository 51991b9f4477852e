// Package fanout is examples/fanout with goroutines, channels and errgroup.
//
// A request has a deadline. A slow or failed call is made a second time after a while; the first call that succeeds
// counts, and the other is cancelled. All requests share a bounded number of calls. The service stops gracefully:
// requests that it has accepted are answered.
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
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
)

// Config has the parameters of a gateway.
type Config struct {
	Backends []func(ctx context.Context, query string) (string, error)
	Deadline time.Duration // of a request
	Hedge    time.Duration // after which a call is made a second time
	Calls    int           // calls that may run at a time, over all requests
	Grace    time.Duration // for requests that run when the service is stopped
}

// Answer is the answer of one backend.
type Answer struct {
	Text  string `json:"text,omitempty"`
	Error string `json:"error,omitempty"`
}

// Gateway sends requests on to backends.
type Gateway struct {
	Config
	calls *semaphore.Weighted
}

// New makes a gateway.
func New(c Config) *Gateway {
	return &Gateway{Config: c, calls: semaphore.NewWeighted(int64(c.Calls))}
}

// Ask asks all backends. It returns the answers and errors that arrive before the deadline, in the order of the
// backends.
func (g *Gateway) Ask(ctx context.Context, query string) []Answer {
	ctx, cancel := context.WithTimeout(ctx, g.Deadline)
	defer cancel()
	answers := make([]Answer, len(g.Backends))
	var wg sync.WaitGroup
	for i := range g.Backends {
		wg.Go(func() {
			text, err := g.hedged(ctx, i, query)
			answers[i].Text = text
			if err != nil {
				answers[i].Error = err.Error()
			}
		})
	}
	wg.Wait()
	return answers
}

// hedged calls a backend, and once more after a while.
func (g *Gateway) hedged(ctx context.Context, backend int, query string) (string, error) {
	type result struct {
		text string
		err  error
	}
	results := make(chan result, 2)
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // the call that is not needed
	call := func() (string, error) {
		if err := g.calls.Acquire(ctx, 1); err != nil {
			return "", err
		}
		defer g.calls.Release(1)
		return g.Backends[backend](ctx, query)
	}
	wg.Go(func() {
		text, err := call()
		results <- result{text, err}
	})
	wg.Go(func() {
		late := time.NewTimer(g.Hedge)
		defer late.Stop()
		select {
		case <-late.C:
			text, err := call()
			results <- result{text, err}
		case <-ctx.Done():
			results <- result{err: ctx.Err()}
		}
	})
	var errs []error
	for range cap(results) {
		r := <-results
		if r.err == nil {
			return r.text, nil
		}
		errs = append(errs, r.err)
	}
	return "", errors.Join(errs...)
}

// ServeHTTP answers a request with the answers of the backends as JSON. If none has answered, the status says so.
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

// Serve accepts connections until ctx ends. Then it answers its remaining requests, for at most Grace, and returns nil
// if that was long enough.
func (g *Gateway) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{Handler: g, ReadHeaderTimeout: time.Minute}
	eg, ctx := errgroup.WithContext(ctx)
	eg.Go(func() error {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	eg.Go(func() error {
		<-ctx.Done() // the end of ctx, or an error of the listener
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.Grace)
		defer cancel()
		if err := srv.Shutdown(ctx); err != nil {
			return errors.Join(err, srv.Close())
		}
		return nil
	})
	return eg.Wait()
}

// Backend returns a backend that asks a web server.
func Backend(client *http.Client, address string) func(ctx context.Context, query string) (string, error) {
	return func(ctx context.Context, query string) (string, error) {
		return get(ctx, client, address+"?q="+url.QueryEscape(query))
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
