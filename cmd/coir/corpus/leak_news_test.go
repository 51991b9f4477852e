//go:build corpus

package corpus

import (
	"sync"
	"testing"
)

// A news hub runs a goroutine for each subscriber and ends them all by closing their channels when it is closed. But a
// subscriber can still come after that. The hub never closes the channel of such a subscriber, whose goroutine never
// ends.
//
// Class: leak
// Expect: leak

type newsHub struct {
	mu   sync.Mutex
	subs []chan string
}

func (h *newsHub) subscribe(read func(string)) {
	news := make(chan string, 4)
	h.mu.Lock()
	h.subs = append(h.subs, news)
	h.mu.Unlock()
	go func() {
		for n := range news {
			read(n)
		}
	}()
}

func (h *newsHub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, news := range h.subs {
		news <- "closing"
		close(news)
	}
	h.subs = nil
}

type newsHubFixed struct {
	mu      sync.Mutex
	closed  bool
	subs    []chan string
	readers sync.WaitGroup
}

func (h *newsHubFixed) subscribe(read func(string)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	news := make(chan string, 4)
	h.subs = append(h.subs, news)
	h.readers.Go(func() {
		for n := range news {
			read(n)
		}
	})
}

func (h *newsHubFixed) close() {
	h.mu.Lock()
	h.closed = true
	for _, news := range h.subs {
		news <- "closing"
		close(news)
	}
	h.subs = nil
	h.mu.Unlock()
	h.readers.Wait()
}

func runNewsHub(t *testing.T, subscribe func(func(string)), closeHub func()) {
	read := func(n string) {
		if n != "closing" {
			t.Errorf("read %q", n)
		}
	}
	subscribe(read)
	var wg sync.WaitGroup
	wg.Go(func() { subscribe(read) })
	closeHub()
	wg.Wait()
}

func TestBugNewsHub(t *testing.T) {
	h := &newsHub{}
	runNewsHub(t, h.subscribe, h.close)
}

func TestFixedNewsHub(t *testing.T) {
	h := &newsHubFixed{}
	runNewsHub(t, h.subscribe, h.close)
}
