//go:build corpus

package corpus

import (
	"sync"
	"testing"
	"time"
)

// A flusher writes out a counter at every tick. Stop offers the loop a signal and does not wait if it is not taken at
// once. If the loop is just flushing, the signal is dropped, and the loop ticks on for ever.
//
// Class: leak
// Expect: leak

type metricFlusher struct {
	mu      sync.Mutex
	count   int
	flushed int
	quit    chan struct{}
	done    chan struct{}
}

func startMetricFlusher(every time.Duration) *metricFlusher {
	m := &metricFlusher{quit: make(chan struct{}), done: make(chan struct{})}
	go m.loop(every)
	return m
}

func (m *metricFlusher) inc() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count++
}

// flush returns the sum of all that was ever flushed.
func (m *metricFlusher) flush() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.flushed += m.count
	m.count = 0
	return m.flushed
}

func (m *metricFlusher) loop(every time.Duration) {
	defer close(m.done)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			m.flush()
		case <-m.quit:
			return
		}
	}
}

func (m *metricFlusher) stop() {
	select {
	case m.quit <- struct{}{}:
	default:
	}
}

func (m *metricFlusher) stopFixed() {
	close(m.quit)
	<-m.done
}

func runMetricFlusher(t *testing.T, stop func(*metricFlusher)) {
	const every = 10 * time.Millisecond
	m := startMetricFlusher(every)
	m.inc()
	time.Sleep(2 * every)
	stop(m)
	if sum := m.flush(); sum != 1 {
		t.Errorf("flushed %d, want 1", sum)
	}
}

func TestBugMetricFlusher(t *testing.T) {
	runMetricFlusher(t, (*metricFlusher).stop)
}

func TestFixedMetricFlusher(t *testing.T) {
	runMetricFlusher(t, (*metricFlusher).stopFixed)
}
