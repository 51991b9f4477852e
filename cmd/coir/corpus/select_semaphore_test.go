//go:build corpus

package corpus

import (
	"slices"
	"sync"
	"testing"
	"time"
)

// A semaphore hands a slot that is released to the first waiter. A waiter whose timeout fires leaves the queue. If
// the slot was handed over to the waiter and the timeout fires as well, the select may take the timeout, and the slot
// is lost.
//
// Class: select
// Expect: fail

type slotSemaphore struct {
	mu      sync.Mutex
	free    int
	waiters []chan struct{}
}

func (s *slotSemaphore) tryAcquire() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free == 0 {
		return false
	}
	s.free--
	return true
}

func (s *slotSemaphore) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiters) > 0 {
		close(s.waiters[0])
		s.waiters = s.waiters[1:]
		return
	}
	s.free++
}

// enqueue takes a free slot, or returns a channel that is closed when a slot is handed over.
func (s *slotSemaphore) enqueue() chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free > 0 {
		s.free--
		return nil
	}
	w := make(chan struct{})
	s.waiters = append(s.waiters, w)
	return w
}

// leave removes a waiter and reports whether it was still queued.
func (s *slotSemaphore) leave(w chan struct{}) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.waiters, w)
	if i < 0 {
		return false
	}
	s.waiters = slices.Delete(s.waiters, i, i+1)
	return true
}

func (s *slotSemaphore) acquire(timeout time.Duration) bool {
	w := s.enqueue()
	if w == nil {
		return true
	}
	select {
	case <-w:
		return true
	case <-time.After(timeout):
		s.leave(w)
		return false
	}
}

func (s *slotSemaphore) acquireFixed(timeout time.Duration) bool {
	w := s.enqueue()
	if w == nil {
		return true
	}
	select {
	case <-w:
		return true
	case <-time.After(timeout):
		return !s.leave(w)
	}
}

func runSlotSemaphore(t *testing.T, acquire func(*slotSemaphore, time.Duration) bool) {
	const work = 10 * time.Millisecond
	s := &slotSemaphore{free: 1}
	acquire(s, work)
	var wg sync.WaitGroup
	wg.Go(func() {
		if acquire(s, work) {
			s.release()
		}
	})
	time.Sleep(work)
	s.release()
	wg.Wait()
	if !s.tryAcquire() {
		t.Error("no slot is free after all were released")
	}
}

func TestBugSlotSemaphore(t *testing.T) {
	runSlotSemaphore(t, (*slotSemaphore).acquire)
}

func TestFixedSlotSemaphore(t *testing.T) {
	runSlotSemaphore(t, (*slotSemaphore).acquireFixed)
}
