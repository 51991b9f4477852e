//go:build corpus

package later

import (
	"sync"
	"testing"
)

// A metrics flusher takes the collected counts under its lock and hands them to a sink without it. It then notes
// the size of the flush for the status page, also without the lock, while the status page reads that note under the
// lock. A status request that comes before the flush is ordered by the lock; one that comes after it races.
//
// Class: race
// Expect: race
type flushMetrics struct {
	mu        sync.Mutex
	counts    map[string]int
	lastFlush int
}

type flushSink struct {
	mu    sync.Mutex
	total int
}

func (s *flushSink) write(counts map[string]int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, c := range counts {
		n += c
	}
	s.total += n
	return n
}

func (m *flushMetrics) Count(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts[name]++
}

func (m *flushMetrics) take() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	counts := m.counts
	m.counts = map[string]int{}
	return counts
}

func (m *flushMetrics) Flush(s *flushSink) {
	m.lastFlush = s.write(m.take())
}

func (m *flushMetrics) FlushLocked(s *flushSink) {
	n := s.write(m.take())
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lastFlush = n
}

func (m *flushMetrics) Status() (waiting, flushed int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.counts), m.lastFlush
}

func runFlushMetrics(t *testing.T, flush func(*flushMetrics, *flushSink)) {
	m := &flushMetrics{counts: map[string]int{}}
	s := &flushSink{}
	m.Count("requests")
	m.Count("errors")
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		flush(m, s)
	}()
	if waiting, flushed := m.Status(); waiting > 2 || flushed > 2 {
		t.Errorf("%d waiting and %d flushed", waiting, flushed)
	}
	wg.Wait()
	if _, flushed := m.Status(); flushed != 2 {
		t.Errorf("%d counts flushed, want 2", flushed)
	}
}

func TestBugFlushMetrics(t *testing.T) {
	runFlushMetrics(t, (*flushMetrics).Flush)
}

func TestFixedFlushMetrics(t *testing.T) {
	runFlushMetrics(t, (*flushMetrics).FlushLocked)
}
