//go:build corpus

package later

import (
	"sync"
	"testing"
)

// An admission gate lets at most two requests run at once and refuses the rest. It reads the number of running
// requests under the lock, decides, and takes the lock again to count the new one. A third request that decides
// while the second is between the two steps is let in as well.
//
// Class: atomicity
// Expect: fail
type admissionGate struct {
	mu      sync.Mutex
	limit   int
	running int
	peak    int
	refused int
}

func (g *admissionGate) busy() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running >= g.limit {
		g.refused++
		return true
	}
	return false
}

func (g *admissionGate) countIn() {
	g.running++
	if g.running > g.peak {
		g.peak = g.running
	}
}

func (g *admissionGate) Enter() bool {
	if g.busy() {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.countIn()
	return true
}

func (g *admissionGate) EnterOnce() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running >= g.limit {
		g.refused++
		return false
	}
	g.countIn()
	return true
}

func (g *admissionGate) Leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
}

func runAdmission(t *testing.T, g *admissionGate, requests int, enter func() bool) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	served := 0
	for i := 0; i < requests; i++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if !enter() {
				return
			}
			defer g.Leave()
			mu.Lock()
			served++
			mu.Unlock()
		}()
	}
	wg.Wait()
	if served+g.refused != requests {
		t.Errorf("%d served and %d refused out of %d", served, g.refused, requests)
	}
	if g.peak > g.limit {
		t.Errorf("%d requests ran at once, the limit is %d", g.peak, g.limit)
	}
}

func TestBugAdmission(t *testing.T) {
	g := &admissionGate{limit: 2}
	runAdmission(t, g, 3, g.Enter)
}

func TestFixedAdmission(t *testing.T) {
	g := &admissionGate{limit: 2}
	runAdmission(t, g, 3, g.EnterOnce)
}
