//go:build corpus

package later

// A circuit breaker counts failures in a row and calls a hook when it trips. The hook writes the breaker's status
// to a journal, and reading the status takes the breaker's lock, which report still holds while it calls the hook.
// It only trips when all three callers fail before any of their retries succeeds.
//
// Class: doublelock
// Expect: deadlock

import (
	"errors"
	"fmt"
	"sync"
	"testing"
)

type brkCircuit struct {
	mu        sync.Mutex
	threshold int
	failures  int
	open      bool
	onTrip    func()
}

func (b *brkCircuit) allow() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.open
}

func (b *brkCircuit) status() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return fmt.Sprintf("open=%v failures=%d", b.open, b.failures)
}

// recordLocked notes the outcome of a call and says whether the breaker has just tripped.
func (b *brkCircuit) recordLocked(err error) bool {
	if err == nil {
		b.failures = 0
		return false
	}
	b.failures++
	if b.failures < b.threshold || b.open {
		return false
	}
	b.open = true
	return true
}

func (b *brkCircuit) report(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.recordLocked(err) {
		b.onTrip()
	}
}

func (b *brkCircuit) reportFixed(err error) {
	b.mu.Lock()
	tripped := b.recordLocked(err)
	b.mu.Unlock()
	if tripped {
		b.onTrip()
	}
}

var errBrkFlaky = errors.New("backend hiccup")

// brkTraffic lets three callers each fail once and then succeed, unless the breaker stops them.
func brkTraffic(t *testing.T, b *brkCircuit, report func(error)) {
	journal := make(chan string, 1)
	b.onTrip = func() { journal <- b.status() }
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for _, outcome := range []error{errBrkFlaky, nil} {
				if !b.allow() {
					return
				}
				report(outcome)
			}
		})
	}
	wg.Wait()
	if b.allow() != (len(journal) == 0) {
		t.Errorf("journal has %d entries, status %s", len(journal), b.status())
	}
}

func TestBugBreakerHook(t *testing.T) {
	b := &brkCircuit{threshold: 3}
	brkTraffic(t, b, b.report)
}

func TestFixedBreakerHook(t *testing.T) {
	b := &brkCircuit{threshold: 3}
	brkTraffic(t, b, b.reportFixed)
}
