// Package synctest has tests in bubbles of testing/synctest that wait for what does not count there: under go test they
// hang.
package synctest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A goroutine that waits for a lock keeps the clock of a bubble from moving.
func TestMutex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		held := make(chan bool)
		go func() {
			mu.Lock()
			close(held)
			time.Sleep(time.Hour)
			mu.Unlock()
		}()
		<-held
		began := time.Now()
		mu.Lock()
		if d := time.Since(began); d != time.Hour {
			t.Errorf("the lock was held for %v", d)
		}
		mu.Unlock()
	})
}

// So does one that waits for a sync.Once.
func TestOnce(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		var once sync.Once
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { once.Do(func() { time.Sleep(time.Minute) }) })
		}
		wg.Wait()
	})
}

// A server on loopback and its client wait for the network.
func TestServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(time.Minute)
			_, _ = io.WriteString(w, "ok")
		}))
		defer s.Close()
		began := time.Now()
		resp, err := s.Client().Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if d := time.Since(began); string(text) != "ok" || err != nil || d < time.Minute || d > time.Minute+time.Second {
			t.Errorf("%q, %v after %v", text, err, d)
		}
	})
}

// Two goroutines in a bubble take locks in opposite orders: synctest runs one order, and that passes.
//
// Expect: deadlock
func TestBugTwoLocks(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		var a, b sync.Mutex
		var wg sync.WaitGroup
		take := func(first, second *sync.Mutex) {
			first.Lock()
			defer first.Unlock()
			second.Lock()
			second.Unlock()
		}
		wg.Go(func() { take(&a, &b) })
		wg.Go(func() { take(&b, &a) })
		wg.Wait()
	})
}
