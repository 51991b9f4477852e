//go:build corpus

package b

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// A server of one document sends the document's tag with its body, and a client with a cache asks again with the tag
// it has. The server reads the body under its lock and then the tag under its lock once more. If the document is
// changed between these steps, the client keeps the old body with the new tag, and from then on the server tells it
// that it is up to date.
//
// Class: atomicity
// Expect: fail
type etagDocument struct {
	read func(d *etagDocument) (body, tag string)

	mu      sync.Mutex
	text    string
	version int
}

func (d *etagDocument) body() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text
}

func (d *etagDocument) tag() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return fmt.Sprintf(`"v%d"`, d.version)
}

func etagRead(d *etagDocument) (body, tag string) {
	return d.body(), d.tag()
}

func etagReadFixed(d *etagDocument) (body, tag string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text, fmt.Sprintf(`"v%d"`, d.version)
}

func (d *etagDocument) change(text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.text = text
	d.version++
}

func (d *etagDocument) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPut {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		d.change(string(text))
		return
	}
	body, tag := d.read(d)
	w.Header().Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	io.WriteString(w, body)
}

// etagCache keeps the last answer and its tag.
type etagCache struct {
	client    *http.Client
	url       string
	body, tag string
}

func (c *etagCache) get() (string, error) {
	req, err := http.NewRequest("GET", c.url, nil)
	if err != nil {
		return "", err
	}
	if c.tag != "" {
		req.Header.Set("If-None-Match", c.tag)
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotModified {
		return c.body, nil
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", err
	}
	c.body, c.tag = string(body), resp.Header.Get("ETag")
	return c.body, nil
}

func etagRun(t *testing.T, read func(d *etagDocument) (body, tag string)) {
	srv := httptest.NewServer(&etagDocument{read: read, text: "old"})
	cache := &etagCache{client: srv.Client(), url: srv.URL}
	var wg sync.WaitGroup
	wg.Go(func() {
		if body, err := cache.get(); err != nil || body != "old" && body != "new" {
			t.Errorf("first answer %q, %v", body, err)
		}
	})
	req, err := http.NewRequest("PUT", srv.URL, strings.NewReader("new"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	wg.Wait()
	if body, err := cache.get(); err != nil || body != "new" {
		t.Errorf("answer after the change %q, %v", body, err)
	}
	srv.Close()
}

func TestBugETagStale(t *testing.T) {
	etagRun(t, etagRead)
}

func TestFixedETagStale(t *testing.T) {
	etagRun(t, etagReadFixed)
}
