//go:build corpus

package later

// A logger gathers lines in a goroutine and writes them in batches, when a batch is full or at a tick. On close it
// writes the current batch and ends. Lines still in the channel at that moment are dropped, since select may pick
// the quit signal although lines are ready as well.
//
// Class: select
// Expect: fail

import (
	"sync"
	"testing"
	"time"
)

type blogLogger struct {
	lines   chan string
	quit    chan struct{}
	done    chan struct{}
	batch   []string
	written []string // the sink; read it after close only
}

func newBlogLogger(run func(*blogLogger)) *blogLogger {
	l := &blogLogger{lines: make(chan string, 2), quit: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(l.done)
		run(l)
	}()
	return l
}

func (l *blogLogger) log(line string) { l.lines <- line }

func (l *blogLogger) close() {
	close(l.quit)
	<-l.done
}

func (l *blogLogger) flush() {
	l.written = append(l.written, l.batch...)
	l.batch = l.batch[:0]
}

func (l *blogLogger) add(line string) {
	l.batch = append(l.batch, line)
	if len(l.batch) == 3 {
		l.flush()
	}
}

func (l *blogLogger) run() {
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	defer l.flush()
	for {
		select {
		case line := <-l.lines:
			l.add(line)
		case <-ticker.C:
			l.flush()
		case <-l.quit:
			return
		}
	}
}

// runFixed empties the channel after run has ended, when no writer is left.
func (l *blogLogger) runFixed() {
	l.run()
	for {
		select {
		case line := <-l.lines:
			l.add(line)
		default:
			l.flush()
			return
		}
	}
}

func blogScene(t *testing.T, run func(*blogLogger)) {
	l := newBlogLogger(run)
	var writers sync.WaitGroup
	for _, name := range []string{"api", "worker"} {
		writers.Add(1)
		go func() {
			defer writers.Done()
			l.log(name + " starts")
			l.log(name + " ends")
		}()
	}
	writers.Wait()
	l.close()
	if len(l.written) != 4 {
		t.Errorf("%d of 4 lines written: %q", len(l.written), l.written)
	}
}

func TestBugBatchLogger(t *testing.T) { blogScene(t, (*blogLogger).run) }

func TestFixedBatchLogger(t *testing.T) { blogScene(t, (*blogLogger).runFixed) }
