//go:build corpus

package corpus

import (
	"sync"
	"testing"
)

// A service reloads its limits while requests read them. The new limits are put in place under the lock and completed
// with defaults after that. A request that reads them in between, or afterwards without anything that orders the two,
// races with the completion.
//
// Class: order
// Expect: race

type rateLimits struct {
	perSecond int
	burst     int
}

func (l *rateLimits) applyDefaults() {
	if l.burst == 0 {
		l.burst = 2 * l.perSecond
	}
}

type limitConfig struct {
	mu      sync.Mutex
	current *rateLimits
}

func (c *limitConfig) limits() rateLimits {
	c.mu.Lock()
	defer c.mu.Unlock()
	return *c.current
}

func (c *limitConfig) set(l *rateLimits) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current = l
}

func (c *limitConfig) reload(perSecond int) {
	next := &rateLimits{perSecond: perSecond}
	c.set(next)
	next.applyDefaults()
}

func (c *limitConfig) reloadFixed(perSecond int) {
	next := &rateLimits{perSecond: perSecond}
	next.applyDefaults()
	c.set(next)
}

func runLimitConfig(t *testing.T, reload func(*limitConfig, int)) {
	c := &limitConfig{current: &rateLimits{perSecond: 10, burst: 20}}
	var wg sync.WaitGroup
	wg.Go(func() { reload(c, 50) })
	if l := c.limits(); l.perSecond != 10 && l.perSecond != 50 {
		t.Errorf("limits %+v", l)
	}
	wg.Wait()
	if l := c.limits(); l.perSecond != 50 || l.burst != 100 {
		t.Errorf("limits after the reload %+v", l)
	}
}

func TestBugLimitConfig(t *testing.T) {
	runLimitConfig(t, (*limitConfig).reload)
}

func TestFixedLimitConfig(t *testing.T) {
	runLimitConfig(t, (*limitConfig).reloadFixed)
}
