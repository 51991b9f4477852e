//go:build corpus

package a

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// A gateway asks its upstream once for all requests for the same rate that come at the same time. The request that asks
// hands the result to those that wait. It waits for them if it has a rate. If it has an error it does not wait, and
// drops the error for each request that is not yet receiving. A request that has put itself on the list and does not
// yet receive loses the error and waits for ever.
//
// Class: lost
// Expect: deadlock
type coalesceGateway struct {
	upstream string
	client   *http.Client
	slots    int // how many results the channel of a waiting request holds

	mu    sync.Mutex
	calls map[string]*coalesceCall
}

type coalesceCall struct {
	waiting []chan coalesceResult
}

type coalesceResult struct {
	rate string
	err  error
}

func (g *coalesceGateway) fetch(currency string) coalesceResult {
	resp, err := g.client.Get(g.upstream + "/" + currency)
	if err != nil {
		return coalesceResult{err: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("upstream: %s", resp.Status)
	}
	return coalesceResult{string(body), err}
}

func (g *coalesceGateway) rate(currency string) coalesceResult {
	g.mu.Lock()
	if call := g.calls[currency]; call != nil {
		result := make(chan coalesceResult, g.slots)
		call.waiting = append(call.waiting, result)
		g.mu.Unlock()
		return <-result
	}
	call := &coalesceCall{}
	g.calls[currency] = call
	g.mu.Unlock()

	r := g.fetch(currency)

	g.mu.Lock()
	delete(g.calls, currency)
	waiting := call.waiting
	g.mu.Unlock()
	for _, result := range waiting {
		if r.err == nil {
			result <- r
			continue
		}
		select {
		case result <- r:
		default:
		}
	}
	return r
}

func (g *coalesceGateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	result := g.rate(r.URL.Path[1:])
	if result.err != nil {
		http.Error(w, result.err.Error(), http.StatusBadGateway)
		return
	}
	io.WriteString(w, result.rate)
}

func coalesceScene(t *testing.T, slots int) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "down for maintenance", http.StatusServiceUnavailable)
	}))
	defer upstream.Close()
	gateway := httptest.NewServer(&coalesceGateway{
		upstream: upstream.URL, client: upstream.Client(), slots: slots, calls: map[string]*coalesceCall{},
	})
	defer gateway.Close()
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			resp, err := gateway.Client().Get(gateway.URL + "/EUR")
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			io.Copy(io.Discard, resp.Body)
			if resp.StatusCode != http.StatusBadGateway {
				t.Errorf("status %s although the upstream is down", resp.Status)
			}
		})
	}
	wg.Wait()
}

func TestBugCoalesce(t *testing.T) { coalesceScene(t, 0) }

func TestFixedCoalesce(t *testing.T) { coalesceScene(t, 1) }
