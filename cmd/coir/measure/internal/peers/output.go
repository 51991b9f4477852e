package peers

import (
	"bytes"
	"strings"
	"sync"
	"time"
)

// output collects the output of a loop, and records when its last run began.
type output struct {
	mu      sync.Mutex
	text    bytes.Buffer
	began   time.Time
	n       int
	longest time.Duration // the longest complete run
}

const most = 1 << 20 // the most bytes of text that are kept

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := strings.Count(string(b), "peers: run")
	if n > 0 || strings.Contains(string(b), "peers: over") {
		now := time.Now()
		if o.n > 0 {
			o.longest = max(o.longest, now.Sub(o.began))
		}
		o.n += n
		o.began = now
	}
	if o.text.Len() < most || !strings.HasPrefix(string(b), "\npeers: run") {
		o.text.Write(b)
	}
	return len(b), nil
}

// state returns the text, the number of runs, and the time since the last run began.
func (o *output) state() (text string, runs int, last time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String(), o.n, time.Since(o.began)
}
