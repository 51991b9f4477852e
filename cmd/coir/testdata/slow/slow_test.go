// Package slow has tests with timers. Two of them rely on a machine that is fast enough.
package slow

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// The server answers at once, and the client waits for a second: on a slow machine that may be too short.
func TestTimeout(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
}

// A sleep is no wait.
func TestSleepsToWait(t *testing.T) {
	ready := make(chan bool, 1)
	go func() { ready <- true }()
	time.Sleep(10 * time.Millisecond)
	select {
	case <-ready:
	default:
		t.Error("not ready")
	}
}

// It passes whenever the timer fires.
func TestWaits(t *testing.T) {
	ready := make(chan bool, 1)
	go func() { ready <- true }()
	select {
	case <-ready:
	case <-time.After(time.Minute):
	}
}

func TestNoTime(t *testing.T) {
	ready := make(chan bool, 1)
	go func() { ready <- true }()
	<-ready
}
