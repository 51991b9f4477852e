//go:build corpus

package later

import (
	"errors"
	"sync"
	"testing"
)

// Two workers deliver webhooks and put a failed one back into the queue. The worker counts the failed delivery as
// done before it adds the retry, so the count of pending work can touch zero in between. That happens only if all
// other hooks are finished by then; the dispatcher then takes the queue for empty and closes it under the retry.
//
// Class: waitgroup
// Expect: panic
type redeliverHook struct {
	url      string
	failures int // how often the receiver will still refuse it
}

type redeliverer struct {
	pending sync.WaitGroup
	queue   chan redeliverHook
	mu      sync.Mutex
	sent    map[string]int
}

var errHookRefused = errors.New("hook refused")

func (r *redeliverer) deliver(h *redeliverHook) error {
	if h.failures > 0 {
		h.failures--
		return errHookRefused
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent[h.url]++
	return nil
}

func (r *redeliverer) work() {
	for h := range r.queue {
		err := r.deliver(&h)
		r.pending.Done()
		if err != nil {
			r.pending.Add(1)
			r.queue <- h
		}
	}
}

func (r *redeliverer) workKeeping() {
	for h := range r.queue {
		if err := r.deliver(&h); err != nil {
			r.queue <- h // still pending
			continue
		}
		r.pending.Done()
	}
}

func runRedeliver(t *testing.T, work func(*redeliverer)) {
	hooks := []redeliverHook{{"/paid", 1}, {"/shipped", 0}, {"/closed", 0}}
	r := &redeliverer{queue: make(chan redeliverHook, len(hooks)), sent: map[string]int{}}
	for _, h := range hooks {
		r.pending.Add(1)
		r.queue <- h
	}
	var workers sync.WaitGroup
	for i := 0; i < 2; i++ {
		workers.Add(1)
		go func() {
			defer workers.Done()
			work(r)
		}()
	}
	r.pending.Wait()
	close(r.queue)
	workers.Wait()
	for _, h := range hooks {
		if n := r.sent[h.url]; n != 1 {
			t.Errorf("%s delivered %d times", h.url, n)
		}
	}
}

func TestBugRedeliver(t *testing.T) {
	runRedeliver(t, (*redeliverer).work)
}

func TestFixedRedeliver(t *testing.T) {
	runRedeliver(t, (*redeliverer).workKeeping)
}
