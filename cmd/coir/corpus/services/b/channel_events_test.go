//go:build corpus

package b

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// A service sends server-sent events to its clients. Each client has a channel in a list. When a client disconnects,
// its handler closes the channel and then takes it off the list. An event that is published between these two steps
// is sent on the closed channel, and the publisher panics.
//
// Class: channel
// Expect: panic
type sseService struct {
	unsubscribe func(s *sseService, ch chan string)

	mu    sync.Mutex
	chans []chan string
}

func (s *sseService) subscribe() chan string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := make(chan string, 4)
	s.chans = append(s.chans, ch)
	return ch
}

// remove takes a channel off the list. The lock is held.
func (s *sseService) remove(ch chan string) {
	s.chans = slices.DeleteFunc(s.chans, func(c chan string) bool { return c == ch })
}

func sseUnsubscribe(s *sseService, ch chan string) {
	close(ch)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(ch)
}

func sseUnsubscribeFixed(s *sseService, ch chan string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(ch)
	close(ch)
}

// publish sends an event to all. A client that does not keep up misses it.
func (s *sseService) publish(event string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ch := range s.chans {
		select {
		case ch <- event:
		default:
		}
	}
}

// ServeHTTP copies events to the client until it has gone. The handler returns when its writer has ended.
func (s *sseService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ch := s.subscribe()
	w.Header().Set("Content-Type", "text/event-stream")
	http.NewResponseController(w).Flush()
	var wg sync.WaitGroup
	wg.Go(func() {
		for event := range ch {
			fmt.Fprintf(w, "data: %s\n\n", event)
			http.NewResponseController(w).Flush()
		}
	})
	<-r.Context().Done()
	s.unsubscribe(s, ch)
	wg.Wait()
}

// sseClient reads one event and disconnects. It says when it has subscribed.
func sseClient(t *testing.T, srv *httptest.Server, subscribed chan<- struct{}) {
	defer close(subscribed)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", srv.URL, nil)
	if err != nil {
		t.Error(err)
		return
	}
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Error(err)
		return
	}
	defer resp.Body.Close()
	subscribed <- struct{}{}
	if line, err := bufio.NewReader(resp.Body).ReadString('\n'); line != "data: event 0\n" {
		t.Errorf("client read %q, %v", line, err)
	}
}

func sseRun(t *testing.T, unsubscribe func(s *sseService, ch chan string)) {
	s := &sseService{unsubscribe: unsubscribe}
	srv := httptest.NewServer(s)
	subscribed := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { sseClient(t, srv, subscribed) })
	<-subscribed
	for i := range 4 {
		s.publish(fmt.Sprint("event ", i))
	}
	wg.Wait()
	s.publish("end")
	srv.Close()
}

func TestBugEventsDisconnect(t *testing.T) {
	sseRun(t, sseUnsubscribe)
}

func TestFixedEventsDisconnect(t *testing.T) {
	sseRun(t, sseUnsubscribeFixed)
}
