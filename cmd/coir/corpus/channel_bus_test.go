//go:build corpus

package corpus

import (
	"errors"
	"sync"
	"testing"
)

// An event bus refuses events after it was closed. Publish looks at the flag under the lock, gives the lock back and
// sends. If the bus is closed between the two, the send hits a closed channel.
//
// Class: channel
// Expect: panic

var (
	errBusClosed = errors.New("bus is closed")
	errBusFull   = errors.New("bus is full")
)

type eventBus struct {
	mu     sync.Mutex
	closed bool
	events chan string
}

func (b *eventBus) publish(event string) error {
	b.mu.Lock()
	closed := b.closed
	b.mu.Unlock()
	if closed {
		return errBusClosed
	}
	b.events <- event
	return nil
}

func (b *eventBus) publishFixed(event string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return errBusClosed
	}
	select {
	case b.events <- event:
		return nil
	default:
		return errBusFull
	}
}

func (b *eventBus) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.closed = true
		close(b.events)
	}
}

func runEventBus(t *testing.T, publish func(*eventBus, string) error) {
	b := &eventBus{events: make(chan string, 4)}
	published := 0
	var wg sync.WaitGroup
	wg.Go(func() {
		for _, event := range []string{"created", "paid"} {
			if publish(b, event) != nil {
				return
			}
			published++
		}
	})
	b.close()
	received := 0
	for range b.events {
		received++
	}
	wg.Wait()
	if received != published {
		t.Errorf("received %d events of %d", received, published)
	}
}

func TestBugEventBus(t *testing.T) {
	runEventBus(t, (*eventBus).publish)
}

func TestFixedEventBus(t *testing.T) {
	runEventBus(t, (*eventBus).publishFixed)
}
