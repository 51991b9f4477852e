//go:build corpus

package corpus

import (
	"sync"
	"testing"
)

// A session cache drops its oldest session when a new one does not fit, and calls a hook for it. The hook reports the
// size of the cache, which takes the lock that put still holds. It happens when a login comes before the logout that
// would have made room.
//
// Class: doublelock
// Expect: deadlock

type sessionCache struct {
	mu      sync.Mutex
	max     int
	ids     []string // oldest first
	onEvict func(id string)
}

func (c *sessionCache) size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.ids)
}

func (c *sessionCache) remove(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, have := range c.ids {
		if have == id {
			c.ids = append(c.ids[:i], c.ids[i+1:]...)
			return
		}
	}
}

func (c *sessionCache) put(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids = append(c.ids, id)
	if len(c.ids) > c.max {
		old := c.ids[0]
		c.ids = c.ids[1:]
		c.onEvict(old)
	}
}

func (c *sessionCache) putFixed(id string) {
	c.mu.Lock()
	c.ids = append(c.ids, id)
	evicted := ""
	if len(c.ids) > c.max {
		evicted = c.ids[0]
		c.ids = c.ids[1:]
	}
	c.mu.Unlock()
	if evicted != "" {
		c.onEvict(evicted)
	}
}

func runSessionCache(t *testing.T, put func(*sessionCache, string)) {
	c := &sessionCache{max: 2}
	c.onEvict = func(id string) {
		t.Logf("evicted %s, %d sessions left", id, c.size())
	}
	put(c, "ann")
	put(c, "bob")
	var wg sync.WaitGroup
	wg.Go(func() { put(c, "cyd") })
	c.remove("ann")
	wg.Wait()
	if n := c.size(); n != 2 {
		t.Errorf("%d sessions, want 2", n)
	}
}

func TestBugSessionCache(t *testing.T) {
	runSessionCache(t, (*sessionCache).put)
}

func TestFixedSessionCache(t *testing.T) {
	runSessionCache(t, (*sessionCache).putFixed)
}
