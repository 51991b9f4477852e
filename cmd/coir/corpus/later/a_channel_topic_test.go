//go:build corpus

package later

import (
	"sync"
	"testing"
)

// A topic closes a subscriber's channel when the subscriber leaves, and closes all of them at shutdown. Shutdown
// copies the list under the lock, closes the channels without it, and empties the list at the end. A subscriber
// that leaves in between is still on the list, so its channel is closed a second time.
//
// Class: channel
// Expect: panic
type topicHub struct {
	mu   sync.Mutex
	next int
	subs map[int]chan string
}

func newTopicHub() *topicHub {
	return &topicHub{subs: map[int]chan string{}}
}

func (h *topicHub) Subscribe() (int, <-chan string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.next++
	ch := make(chan string, 1)
	h.subs[h.next] = ch
	return h.next, ch
}

func (h *topicHub) Publish(msg string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, ch := range h.subs {
		select {
		case ch <- msg:
		default: // a slow subscriber misses the message
		}
	}
}

func (h *topicHub) Leave(id int) {
	h.mu.Lock()
	ch, ok := h.subs[id]
	delete(h.subs, id)
	h.mu.Unlock()
	if ok {
		close(ch)
	}
}

func (h *topicHub) Shutdown() {
	h.mu.Lock()
	var all []chan string
	for _, ch := range h.subs {
		all = append(all, ch)
	}
	h.mu.Unlock()
	for _, ch := range all {
		close(ch)
	}
	h.mu.Lock()
	h.subs = map[int]chan string{}
	h.mu.Unlock()
}

func (h *topicHub) ShutdownTake() {
	h.mu.Lock()
	all := h.subs
	h.subs = map[int]chan string{}
	h.mu.Unlock()
	for _, ch := range all {
		close(ch)
	}
}

func runTopicHub(t *testing.T, h *topicHub, shutdown func()) {
	id, msgs := h.Subscribe()
	h.Publish("config changed")
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		if m := <-msgs; m != "config changed" {
			t.Errorf("got message %q", m)
		}
		h.Leave(id)
	}()
	shutdown()
	wg.Wait()
}

func TestBugTopicShutdown(t *testing.T) {
	h := newTopicHub()
	runTopicHub(t, h, h.Shutdown)
}

func TestFixedTopicShutdown(t *testing.T) {
	h := newTopicHub()
	runTopicHub(t, h, h.ShutdownTake)
}
