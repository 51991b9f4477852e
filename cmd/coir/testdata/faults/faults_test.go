// Package faults has tests that are right as long as nothing goes wrong, and one that is right in any case.
package faults

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coir-go/coir/explore"
)

// The server has charged before the connection is reset, and the client tries again.
func TestChargesTwice(t *testing.T) {
	var mu sync.Mutex
	charged := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		mu.Lock()
		charged++
		mu.Unlock()
		_, _ = io.WriteString(w, "ok")
	}))
	defer s.Close()
	for range 5 {
		resp, err := s.Client().Post(s.URL, "text/plain", strings.NewReader("pay"))
		if err == nil {
			_ = resp.Body.Close()
			break
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if charged > 1 {
		t.Errorf("charged %d times", charged)
	}
}

// A message may come in parts.
func TestOneRead(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			_, _ = c.Write([]byte("hello"))
			_ = c.Close()
		}
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	buf := make([]byte, 100)
	if n, err := c.Read(buf); err == nil && string(buf[:n]) != "hello" {
		t.Errorf("read %q", buf[:n])
	}
}

func server() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok")
	}))
}

// A client without a timeout waits for good.
func TestNoTimeout(t *testing.T) {
	s := server()
	defer s.Close()
	if resp, err := s.Client().Get(s.URL); err == nil {
		_ = resp.Body.Close()
	}
}

// The first try is the only one.
func TestOneTry(t *testing.T) {
	s := server()
	defer s.Close()
	resp, err := s.Client().Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
}

// There are fewer faults than tries, and each try has its time.
func TestRetries(t *testing.T) {
	s := server()
	defer s.Close()
	c := &http.Client{Timeout: time.Minute, Transport: &http.Transport{}}
	defer c.CloseIdleConnections()
	for range 5 {
		resp, err := c.Get(s.URL)
		if err != nil {
			continue
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err == nil && string(text) == "ok" {
			return
		}
	}
	t.Error("five times in vain")
}

// The test offers a fault of its own, and has not thought of a second one.
func TestOffers(t *testing.T) {
	for range 20 {
		if explore.Fault(t) && explore.Fault(t) {
			t.Error("two faults, one after the other")
		}
	}
}

// One of the two comes first, and in some schedule the other one.
func TestSometimes(t *testing.T) {
	first := make(chan string, 2)
	go func() { first <- "a" }()
	go func() { first <- "b" }()
	name := <-first
	explore.Sometimes(t, name == "a", "a is first")
	explore.Sometimes(t, name == "b", "b is first")
	<-first
}

func TestNever(t *testing.T) {
	explore.Sometimes(t, true, "always")
	explore.Sometimes(t, false, "never")
}
