//go:build corpus

package later

import (
	"sync"
	"testing"
	"time"
)

// A hedged read asks the primary replica and, if no answer comes within a short delay, asks the backup as well;
// the first answer wins. The answers travel over an unbuffered channel that is read once. When the delay passes
// while the primary is still busy, both replicas answer and the slower one is stuck sending for good.
//
// Class: leak
// Expect: leak
type hedgeReplica struct {
	mu    sync.Mutex
	rows  map[string]string
	reads int
}

func newHedgeReplica() *hedgeReplica {
	return &hedgeReplica{rows: map[string]string{"user:1": "Ada"}}
}

func (r *hedgeReplica) Read(key string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads++
	return r.rows[key]
}

type hedgedReader struct {
	primary, backup *hedgeReplica
	delay           time.Duration
	room            int // buffer of the answer channel
	asking          sync.WaitGroup
}

func (h *hedgedReader) ask(r *hedgeReplica, key string, answers chan<- string) {
	h.asking.Add(1)
	go func() {
		defer h.asking.Done()
		answers <- r.Read(key)
	}()
}

func (h *hedgedReader) Read(key string) string {
	answers := make(chan string, h.room)
	h.ask(h.primary, key, answers)
	timer := time.NewTimer(h.delay)
	defer timer.Stop()
	select {
	case v := <-answers:
		return v
	case <-timer.C:
		h.ask(h.backup, key, answers)
		return <-answers
	}
}

func newHedgedReader(room int) *hedgedReader {
	return &hedgedReader{
		primary: newHedgeReplica(),
		backup:  newHedgeReplica(),
		delay:   3 * time.Millisecond,
		room:    room,
	}
}

func TestBugHedgedRead(t *testing.T) {
	h := newHedgedReader(0)
	if v := h.Read("user:1"); v != "Ada" {
		t.Errorf("read %q", v)
	}
}

func TestFixedHedgedRead(t *testing.T) {
	h := newHedgedReader(2)
	if v := h.Read("user:1"); v != "Ada" {
		t.Errorf("read %q", v)
	}
	h.asking.Wait()
}
