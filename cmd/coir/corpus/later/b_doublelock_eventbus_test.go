//go:build corpus

package later

// An event bus calls its handlers under a read lock. One handler asks the bus how many subscribers there are, which
// takes the read lock again. That works until a subscriber leaves in between: the waiting writer keeps the second read
// lock out, and the first one is never given back.
//
// Class: doublelock
// Expect: deadlock

import (
	"sync"
	"testing"
)

type ebusHandler func(event string)

type ebusBus struct {
	mu       sync.RWMutex
	next     int
	ids      []int
	handlers map[int]ebusHandler
}

// subscribe adds a handler and returns the function that removes it.
func (b *ebusBus) subscribe(fn ebusHandler) (unsubscribe func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	id := b.next
	b.next++
	b.ids = append(b.ids, id)
	b.handlers[id] = fn
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.handlers, id)
	}
}

func (b *ebusBus) size() int {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return len(b.handlers)
}

func (b *ebusBus) publish(event string) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, id := range b.ids {
		if fn := b.handlers[id]; fn != nil {
			fn(event)
		}
	}
}

// publishFixed calls the handlers that were there at the start, without the lock.
func (b *ebusBus) publishFixed(event string) {
	b.mu.RLock()
	var fns []ebusHandler
	for _, id := range b.ids {
		if fn := b.handlers[id]; fn != nil {
			fns = append(fns, fn)
		}
	}
	b.mu.RUnlock()
	for _, fn := range fns {
		fn(event)
	}
}

func ebusScene(t *testing.T, b *ebusBus, publish func(string)) {
	b.handlers = map[int]ebusHandler{}
	sizes := make(chan int, 2)
	b.subscribe(func(string) { sizes <- b.size() })
	leave := b.subscribe(func(string) {})
	var wg sync.WaitGroup
	wg.Add(2)
	go func() {
		defer wg.Done()
		publish("started")
		publish("stopped")
	}()
	go func() {
		defer wg.Done()
		leave()
	}()
	wg.Wait()
	if first, second := <-sizes, <-sizes; first < second || second < 1 {
		t.Errorf("audience went from %d to %d", first, second)
	}
}

func TestBugEventBusReentry(t *testing.T) {
	b := &ebusBus{}
	ebusScene(t, b, b.publish)
}

func TestFixedEventBusReentry(t *testing.T) {
	b := &ebusBus{}
	ebusScene(t, b, b.publishFixed)
}
