//go:build corpus

package later

import (
	"sync"
	"testing"
)

// A batch writer collects records and writes them from one goroutine; each client waits until its record is
// written. A client nudges the writer with a send that gives up if the writer is not listening. If the record
// arrives after the writer looked for work but before it listens again, the nudge is dropped and both sides wait.
//
// Class: lost
// Expect: deadlock
type batchRecord struct {
	line    string
	written chan struct{}
}

type batchWriter struct {
	mu      sync.Mutex
	pending []batchRecord
	nudge   chan struct{}
	quit    chan struct{}
	ended   chan struct{}
	lines   []string // owned by the loop until ended is closed
}

func newBatchWriter(nudge chan struct{}) *batchWriter {
	w := &batchWriter{nudge: nudge, quit: make(chan struct{}), ended: make(chan struct{})}
	go w.loop()
	return w
}

func (w *batchWriter) loop() {
	defer close(w.ended)
	for {
		w.mu.Lock()
		batch := w.pending
		w.pending = nil
		w.mu.Unlock()
		for _, r := range batch {
			w.lines = append(w.lines, r.line)
			close(r.written)
		}
		select {
		case <-w.nudge:
		case <-w.quit:
			return
		}
	}
}

func (w *batchWriter) Write(line string) {
	r := batchRecord{line: line, written: make(chan struct{})}
	w.mu.Lock()
	w.pending = append(w.pending, r)
	w.mu.Unlock()
	select {
	case w.nudge <- struct{}{}:
	default: // the writer is awake already
	}
	<-r.written
}

func (w *batchWriter) Close() []string {
	close(w.quit)
	<-w.ended
	return w.lines
}

func runBatchWriter(t *testing.T, w *batchWriter) {
	var wg sync.WaitGroup
	for _, line := range []string{"login", "logout"} {
		wg.Add(1)
		go func() {
			defer wg.Done()
			w.Write(line)
		}()
	}
	wg.Wait()
	if lines := w.Close(); len(lines) != 2 {
		t.Errorf("wrote %d lines, want 2", len(lines))
	}
}

func TestBugBatchWriter(t *testing.T) {
	runBatchWriter(t, newBatchWriter(make(chan struct{})))
}

func TestFixedBatchWriter(t *testing.T) {
	runBatchWriter(t, newBatchWriter(make(chan struct{}, 1)))
}
