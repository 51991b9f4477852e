//go:build corpus

package later

import (
	"sync"
	"testing"
	"time"
)

// A health probe runs on a timer that re-arms itself from its own callback. Start arms the timer, lists the probe
// in a table and only then stores the timer in the probe. If the first tick comes while Start is still busy, the
// callback finds no timer to re-arm.
//
// Class: order
// Expect: panic
type probeTable struct {
	mu    sync.Mutex
	names []string
}

func (pt *probeTable) add(name string) {
	pt.mu.Lock()
	defer pt.mu.Unlock()
	pt.names = append(pt.names, name)
}

type healthProbe struct {
	name  string
	every time.Duration
	left  int
	done  chan struct{}

	mu    sync.Mutex
	timer *time.Timer
}

func newHealthProbe(name string) *healthProbe {
	return &healthProbe{name: name, every: 2 * time.Millisecond, left: 2, done: make(chan struct{})}
}

func (p *healthProbe) tick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left--
	if p.left == 0 {
		close(p.done)
		return
	}
	p.timer.Reset(p.every)
}

func (p *healthProbe) Start(pt *probeTable) {
	timer := time.AfterFunc(p.every, p.tick)
	pt.add(p.name)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = timer
}

func (p *healthProbe) StartLocked(pt *probeTable) {
	pt.add(p.name)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = time.AfterFunc(p.every, p.tick)
}

func runHealthProbes(t *testing.T, start func(*healthProbe, *probeTable)) {
	pt := &probeTable{}
	db, mq := newHealthProbe("db"), newHealthProbe("mq")
	var wg sync.WaitGroup
	for _, p := range []*healthProbe{db, mq} {
		wg.Add(1)
		go func() {
			defer wg.Done()
			start(p, pt)
		}()
	}
	<-db.done
	<-mq.done
	wg.Wait()
	if len(pt.names) != 2 {
		t.Errorf("%d probes listed, want 2", len(pt.names))
	}
}

func TestBugHealthProbe(t *testing.T) {
	runHealthProbes(t, (*healthProbe).Start)
}

func TestFixedHealthProbe(t *testing.T) {
	runHealthProbes(t, (*healthProbe).StartLocked)
}
