// Package handlers has tests with a handler that panics in some orders. net/http recovers the panic.
package handlers

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// shop takes payments until it closes, which it may do too early.
type shop struct{ payments chan string }

func newShop() (*shop, http.Handler) {
	s, mux := &shop{make(chan string, 1)}, http.NewServeMux()
	mux.HandleFunc("/pay", func(_ http.ResponseWriter, r *http.Request) { s.payments <- r.RemoteAddr })
	mux.HandleFunc("/close", func(http.ResponseWriter, *http.Request) { close(s.payments) })
	return s, mux
}

// errs returns the errors of two requests that come at the same time.
func errs(server *httptest.Server) (pay, closing error) {
	get := func(path string) error {
		resp, err := server.Client().Get(server.URL + path)
		if err == nil {
			_ = resp.Body.Close()
		}
		return err
	}
	var wg sync.WaitGroup
	wg.Go(func() { pay = get("/pay") })
	wg.Go(func() { closing = get("/close") })
	wg.Wait()
	return pay, closing
}

// The client's error does not say what happened.
//
// Expect: fail
func TestPay(t *testing.T) {
	_, handler := newShop()
	server := httptest.NewServer(handler)
	defer server.Close()
	if pay, closing := errs(server); pay != nil || closing != nil {
		t.Error(pay, closing)
	}
}

// The test ignores the errors.
//
// Expect: recovered
func TestIgnores(*testing.T) {
	_, handler := newShop()
	server := httptest.NewServer(handler)
	defer server.Close()
	_, _ = errs(server)
}

// A server of HTTP/2 recovers the panic, too.
//
// Expect: recovered
func TestHTTP2(*testing.T) {
	_, handler := newShop()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	_, _ = errs(server)
}

// The handler panics in each order.
func TestAlways(*testing.T) {
	s, handler := newShop()
	close(s.payments)
	server := httptest.NewServer(handler)
	defer server.Close()
	if resp, err := server.Client().Get(server.URL + "/pay"); err == nil {
		_ = resp.Body.Close()
	}
}

// A handler may end a request in this way, and net/http does not log it.
func TestAborts(*testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer server.Close()
	_, _ = errs(server)
}

// A handler that recovers its own panic is no news.
func TestRecovers(*testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		defer func() { _ = recover() }()
		panic("oh no")
	}))
	defer server.Close()
	_, _ = errs(server)
}
