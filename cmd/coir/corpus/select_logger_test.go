//go:build corpus

package corpus

import (
	"sync"
	"testing"
)

// A logger queues its lines and writes them in a loop. Close tells the loop to quit and waits for it. If lines are
// still queued when the loop sees the quit channel closed, the select may choose to quit, and the lines are lost.
//
// Class: select
// Expect: fail

type queueLogger struct {
	queue chan string
	quit  chan struct{}
	done  chan struct{}
	lines []string
}

func newQueueLogger() *queueLogger {
	return &queueLogger{queue: make(chan string, 8), quit: make(chan struct{}), done: make(chan struct{})}
}

func (l *queueLogger) loop() {
	defer close(l.done)
	for {
		select {
		case line := <-l.queue:
			l.lines = append(l.lines, line)
		case <-l.quit:
			return
		}
	}
}

func (l *queueLogger) loopFixed() {
	defer close(l.done)
	for {
		select {
		case line := <-l.queue:
			l.lines = append(l.lines, line)
		case <-l.quit:
			l.drain()
			return
		}
	}
}

func (l *queueLogger) drain() {
	for {
		select {
		case line := <-l.queue:
			l.lines = append(l.lines, line)
		default:
			return
		}
	}
}

func (l *queueLogger) close() []string {
	close(l.quit)
	<-l.done
	return l.lines
}

func runQueueLogger(t *testing.T, loop func(*queueLogger)) {
	l := newQueueLogger()
	go loop(l)
	var writers sync.WaitGroup
	for _, line := range []string{"started", "ready"} {
		writers.Go(func() { l.queue <- line })
	}
	writers.Wait()
	if lines := l.close(); len(lines) != 2 {
		t.Errorf("wrote %q, want two lines", lines)
	}
}

func TestBugQueueLogger(t *testing.T) {
	runQueueLogger(t, (*queueLogger).loop)
}

func TestFixedQueueLogger(t *testing.T) {
	runQueueLogger(t, (*queueLogger).loopFixed)
}
