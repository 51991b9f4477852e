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

// A checkout, served over TLS, reads feature flags. Its handler holds the read lock of the flags during the whole
// request, so that a reload half-way cannot mix old flags and new ones, and asks for single flags with a method that
// takes the read lock again. If a reload begins to wait for the write lock in between, the second read lock waits
// for the reload, and the reload waits for the first.
//
// Class: doublelock
// Expect: deadlock
type flagSet struct {
	mu      sync.RWMutex
	version int
	flags   map[string]bool
}

func (f *flagSet) enabled(name string) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.flags[name]
}

func (f *flagSet) reload(flags map[string]bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.version++
	f.flags = flags
}

// A flagView is one version of the flags, read while the read lock is held. Flags are never changed, only replaced.
type flagView struct {
	version int
	flags   map[string]bool
}

func (f *flagSet) view() flagView {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return flagView{f.version, f.flags}
}

type flagShop struct {
	flags *flagSet
	views bool // use one view for the whole request
}

func flagPrice(version int, enabled func(string) bool) string {
	price, currency := 100, "USD"
	if enabled("discount") {
		price = 90
	}
	if enabled("euro") {
		currency = "EUR"
	}
	return fmt.Sprintf("version %d: %d %s", version, price, currency)
}

func (s *flagShop) checkout(w http.ResponseWriter, r *http.Request) {
	if s.views {
		v := s.flags.view()
		io.WriteString(w, flagPrice(v.version, func(name string) bool { return v.flags[name] }))
		return
	}
	s.flags.mu.RLock()
	defer s.flags.mu.RUnlock()
	io.WriteString(w, flagPrice(s.flags.version, s.flags.enabled))
}

func (s *flagShop) reload(w http.ResponseWriter, r *http.Request) {
	s.flags.reload(map[string]bool{"discount": true, "euro": true})
	io.WriteString(w, "reloaded")
}

func flagScene(t *testing.T, views bool) {
	s := &flagShop{flags: &flagSet{version: 1, flags: map[string]bool{}}, views: views}
	mux := http.NewServeMux()
	mux.HandleFunc("/checkout", s.checkout)
	mux.HandleFunc("/reload", s.reload)
	srv := httptest.NewTLSServer(mux)
	defer srv.Close()
	get := func(path string) string {
		resp, err := srv.Client().Get(srv.URL + path)
		if err != nil {
			t.Error(err)
			return ""
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Error(err)
		}
		return string(body)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if got := get("/checkout"); got != "version 1: 100 USD" && got != "version 2: 90 EUR" {
			t.Errorf("checkout with %q", got)
		}
	})
	wg.Go(func() { get("/reload") })
	wg.Wait()
	if got := get("/checkout"); got != "version 2: 90 EUR" {
		t.Errorf("checkout with %q after the reload", got)
	}
}

func TestBugFlags(t *testing.T) { flagScene(t, false) }

func TestFixedFlags(t *testing.T) { flagScene(t, true) }
