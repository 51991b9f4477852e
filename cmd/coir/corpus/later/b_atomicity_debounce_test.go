//go:build corpus

package later

// Notices are gathered and mailed as one digest when none has come in for a while; flush mails them early. flush
// looks for pending notices, stops the timer, gives the lock back and then delivers. If the timer has gone off just
// before and its delivery gets in first, flush mails a digest with nothing in it.
//
// Class: atomicity
// Expect: fail

import (
	"sync"
	"testing"
	"time"
)

type debMailer struct {
	mu      sync.Mutex
	quiet   time.Duration
	timer   *time.Timer
	armed   sync.WaitGroup // timers that have neither been stopped nor delivered
	pending []string
	digests [][]string
}

func (m *debMailer) disarmLocked() {
	if m.timer != nil && m.timer.Stop() {
		m.armed.Done()
	}
	m.timer = nil
}

// notify adds a notice and starts the quiet time anew.
func (m *debMailer) notify(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pending = append(m.pending, text)
	m.disarmLocked()
	m.armed.Add(1)
	m.timer = time.AfterFunc(m.quiet, func() {
		defer m.armed.Done()
		m.mu.Lock()
		defer m.mu.Unlock()
		if len(m.pending) > 0 {
			m.deliverLocked()
		}
	})
}

func (m *debMailer) deliverLocked() {
	m.digests = append(m.digests, m.pending)
	m.pending = nil
}

func (m *debMailer) flush() {
	m.mu.Lock()
	waiting := len(m.pending) > 0
	m.disarmLocked()
	m.mu.Unlock()
	if waiting {
		m.mu.Lock()
		m.deliverLocked()
		m.mu.Unlock()
	}
}

func (m *debMailer) flushFixed() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.disarmLocked()
	if len(m.pending) > 0 {
		m.deliverLocked()
	}
}

func debScene(t *testing.T, flush func(*debMailer)) {
	m := &debMailer{quiet: time.Millisecond}
	var wg sync.WaitGroup
	wg.Go(func() {
		m.notify("disk is filling up")
		m.notify("disk is full")
	})
	wg.Go(func() {
		time.Sleep(m.quiet) // the user opens the page after a while
		flush(m)
	})
	wg.Wait()
	m.armed.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	notices := 0
	for i, d := range m.digests {
		if len(d) == 0 {
			t.Errorf("digest %d of %d is empty", i+1, len(m.digests))
		}
		notices += len(d)
	}
	if notices != 2 {
		t.Errorf("%d notices mailed, want 2", notices)
	}
}

func TestBugDebounceFlush(t *testing.T) { debScene(t, (*debMailer).flush) }

func TestFixedDebounceFlush(t *testing.T) { debScene(t, (*debMailer).flushFixed) }
