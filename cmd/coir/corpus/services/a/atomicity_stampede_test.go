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

// A caching proxy asks the origin once for each page. Requests for a page that is being fetched join the fetch under
// way. The proxy looks into the cache first and for a fetch second, in two steps. A request that misses the cache
// just before the fetch of another request ends, and looks for that fetch just after, finds neither and asks the
// origin a second time.
//
// Class: atomicity
// Expect: fail
type stampedeProxy struct {
	origin  string
	client  *http.Client
	recheck bool // look into the cache again before a fetch begins

	mu      sync.Mutex
	pages   map[string]string
	fetches map[string]*stampedeFetch
}

type stampedeFetch struct {
	done chan struct{}
	page string
	err  error
}

func (p *stampedeProxy) cached(key string) (string, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	page, ok := p.pages[key]
	return page, ok
}

func (p *stampedeProxy) load(key string) (string, error) {
	p.mu.Lock()
	if page, ok := p.pages[key]; ok && p.recheck {
		p.mu.Unlock()
		return page, nil
	}
	if f := p.fetches[key]; f != nil {
		p.mu.Unlock()
		<-f.done
		return f.page, f.err
	}
	f := &stampedeFetch{done: make(chan struct{})}
	p.fetches[key] = f
	p.mu.Unlock()

	f.page, f.err = stampedeGet(p.client, p.origin+"/"+key)

	p.mu.Lock()
	if f.err == nil {
		p.pages[key] = f.page
	}
	delete(p.fetches, key)
	p.mu.Unlock()
	close(f.done)
	return f.page, f.err
}

func (p *stampedeProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := r.URL.Path[1:]
	page, ok := p.cached(key)
	if !ok {
		var err error
		if page, err = p.load(key); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
	}
	io.WriteString(w, page)
}

func stampedeGet(c *http.Client, url string) (string, error) {
	resp, err := c.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %s", resp.Status)
	}
	return string(body), err
}

func stampedeScene(t *testing.T, recheck bool) {
	var mu sync.Mutex
	hits := 0
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		hits++
		mu.Unlock()
		fmt.Fprintf(w, "page %s", r.URL.Path[1:])
	}))
	proxy := httptest.NewServer(&stampedeProxy{
		origin: origin.URL, client: origin.Client(), recheck: recheck,
		pages: map[string]string{}, fetches: map[string]*stampedeFetch{},
	})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			page, err := stampedeGet(proxy.Client(), proxy.URL+"/home")
			if err != nil || page != "page home" {
				t.Errorf("got %q, %v", page, err)
			}
		})
	}
	wg.Wait()
	proxy.Close()
	origin.Close()
	if hits != 1 {
		t.Errorf("the origin was asked %d times for one page", hits)
	}
}

func TestBugStampede(t *testing.T) { stampedeScene(t, false) }

func TestFixedStampede(t *testing.T) { stampedeScene(t, true) }
