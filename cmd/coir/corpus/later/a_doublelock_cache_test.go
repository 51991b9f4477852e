//go:build corpus

package later

import (
	"fmt"
	"sync"
	"testing"
)

// A cache of tenant settings guards its map with a read-write lock. The status line takes the read lock and then
// asks for the entry count, which takes the read lock again. That is harmless until a writer queues up between the
// two: the second read lock waits behind the writer, and the writer waits for the first read lock.
//
// Class: doublelock
// Expect: deadlock
type tenantCache struct {
	mu    sync.RWMutex
	items map[string]string
}

func newTenantCache() *tenantCache {
	return &tenantCache{items: map[string]string{"default": "plan=free"}}
}

func (c *tenantCache) Put(key, val string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.items[key] = val
}

func (c *tenantCache) Get(key string) (string, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	v, ok := c.items[key]
	return v, ok
}

func (c *tenantCache) Len() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.items)
}

func (c *tenantCache) Status() string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	def := c.items["default"]
	return fmt.Sprintf("%d tenants, default %s", c.Len(), def)
}

func (c *tenantCache) StatusFlat() string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return fmt.Sprintf("%d tenants, default %s", len(c.items), c.items["default"])
}

func runTenantCache(t *testing.T, c *tenantCache, status func() string) {
	var wg sync.WaitGroup
	wg.Add(2)
	go func() {
		defer wg.Done()
		c.Put("acme", "plan=gold")
		if _, ok := c.Get("acme"); !ok {
			t.Error("acme was stored but is missing")
		}
	}()
	go func() {
		defer wg.Done()
		if status() == "" {
			t.Error("empty status line")
		}
	}()
	wg.Wait()
	if n := c.Len(); n != 2 {
		t.Errorf("cache holds %d tenants, want 2", n)
	}
}

func TestBugTenantCache(t *testing.T) {
	c := newTenantCache()
	runTenantCache(t, c, c.Status)
}

func TestFixedTenantCache(t *testing.T) {
	c := newTenantCache()
	runTenantCache(t, c, c.StatusFlat)
}
