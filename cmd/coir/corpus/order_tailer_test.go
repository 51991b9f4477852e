//go:build corpus

package corpus

import (
	"sync"
	"testing"
)

// A tailer passes lines to a sink. It starts to read when it is made, and the sink is attached afterwards. If a line is
// read before that, there is no sink to pass it to.
//
// Class: order
// Expect: panic

type lineSink struct {
	prefix string
	lines  []string
}

func (s *lineSink) write(line string) {
	s.lines = append(s.lines, s.prefix+line)
}

type lineTailer struct {
	in   <-chan string
	done chan struct{}
	mu   sync.Mutex
	sink *lineSink
}

func startTailer(in <-chan string) *lineTailer {
	tail := &lineTailer{in: in, done: make(chan struct{})}
	go tail.loop()
	return tail
}

func startTailerFixed(in <-chan string, sink *lineSink) *lineTailer {
	tail := &lineTailer{in: in, done: make(chan struct{}), sink: sink}
	go tail.loop()
	return tail
}

func (l *lineTailer) attach(sink *lineSink) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sink = sink
}

func (l *lineTailer) loop() {
	defer close(l.done)
	for line := range l.in {
		l.mu.Lock()
		sink := l.sink
		l.mu.Unlock()
		sink.write(line)
	}
}

func tailedLines() <-chan string {
	in := make(chan string, 2)
	in <- "started"
	in <- "ready"
	close(in)
	return in
}

func TestBugTailer(t *testing.T) {
	sink := &lineSink{prefix: "app: "}
	tail := startTailer(tailedLines())
	tail.attach(sink)
	<-tail.done
	if len(sink.lines) != 2 {
		t.Errorf("the sink has %q, want two lines", sink.lines)
	}
}

func TestFixedTailer(t *testing.T) {
	sink := &lineSink{prefix: "app: "}
	tail := startTailerFixed(tailedLines(), sink)
	<-tail.done
	if len(sink.lines) != 2 {
		t.Errorf("the sink has %q, want two lines", sink.lines)
	}
}
