// Package early has bugs that need a timer to fire while goroutines are busy.
package early

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

type shop struct {
	stock, holds sync.Mutex
	expired      chan struct{}
}

func (s *shop) hold() {
	s.stock.Lock()
	defer s.stock.Unlock()
	s.holds.Lock()
	defer s.holds.Unlock()
}

func (s *shop) expire() {
	defer close(s.expired)
	s.holds.Lock()
	defer s.holds.Unlock()
	s.stock.Lock()
	defer s.stock.Unlock()
}

func (s *shop) expireInOrder() {
	defer close(s.expired)
	s.hold()
}

// The timer takes the locks in the other order.
func TestDeadlock(*testing.T) {
	s := &shop{expired: make(chan struct{})}
	time.AfterFunc(time.Second, s.expire)
	s.hold()
	<-s.expired
}

func TestNoDeadlock(*testing.T) {
	s := &shop{expired: make(chan struct{})}
	time.AfterFunc(time.Second, s.expireInOrder)
	s.hold()
	<-s.expired
}

// The test fails in most of these schedules, by its own judgement, and there is a deadlock too.
func TestDeadlockBesideTimeout(t *testing.T) {
	s := &shop{expired: make(chan struct{})}
	began := time.Now()
	time.AfterFunc(time.Second, s.expire)
	s.hold()
	if time.Since(began) >= time.Second {
		t.Error("too slow")
	}
	<-s.expired
}

// The timer closes a channel that a goroutine sends on.
func TestPanic(*testing.T) {
	queue := make(chan int, 2)
	time.AfterFunc(time.Second, func() { close(queue) })
	queue <- 1
	queue <- 2
	time.Sleep(2 * time.Second)
}

// No machine is so slow that a day ends early.
func TestDay(t *testing.T) {
	select {
	case <-time.After(24 * time.Hour):
		t.Error("too slow")
	case <-ready():
	}
}

// A test that has failed and then waits for good is a test that has failed.
func TestFailsAndWaits(t *testing.T) {
	done := make(chan struct{})
	select {
	case <-time.After(time.Second):
		t.Error("too slow")
		<-done
	case <-ready():
	}
}

// net/http dials for at most 30 seconds, and in memory that never takes so long. With -racing neither.
func TestDials(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	defer http.DefaultClient.CloseIdleConnections()
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			resp, err := http.Get(s.URL)
			if err != nil {
				t.Error(err)
				return
			}
			_ = resp.Body.Close()
		})
	}
	wg.Wait()
}

func ready() chan struct{} {
	c := make(chan struct{})
	go close(c)
	return c
}
