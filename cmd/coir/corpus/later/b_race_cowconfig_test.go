//go:build corpus

package later

// A configuration is copied on write, but only if a snapshot was taken since the last copy. set decides under the lock
// whether to copy and then writes the value after giving the lock back. A snapshot taken meanwhile shares the slice
// that set is about to change; watchers, who read after the notification, are safe.
//
// Class: race
// Expect: race

import (
	"sync"
	"testing"
)

type cowConfig struct {
	mu       sync.Mutex
	limits   []int
	shared   bool
	watchers []chan struct{}
}

func (c *cowConfig) snapshot() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shared = true
	return c.limits
}

func (c *cowConfig) watch() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := make(chan struct{}, 1)
	c.watchers = append(c.watchers, w)
	return w
}

func (c *cowConfig) ownLocked() {
	if c.shared {
		c.limits = append([]int(nil), c.limits...)
		c.shared = false
	}
}

func (c *cowConfig) notify() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.watchers {
		select {
		case w <- struct{}{}:
		default: // it has a notification to read already
		}
	}
}

func (c *cowConfig) set(i, v int) {
	c.mu.Lock()
	c.ownLocked()
	limits := c.limits
	c.mu.Unlock()
	limits[i] = v
	c.notify()
}

func (c *cowConfig) setFixed(i, v int) {
	c.mu.Lock()
	c.ownLocked()
	c.limits[i] = v
	c.mu.Unlock()
	c.notify()
}

func cowScene(t *testing.T, c *cowConfig, set func(i, v int)) {
	changed := c.watch()
	var wg sync.WaitGroup
	wg.Add(3)
	go func() { // a watcher
		defer wg.Done()
		<-changed
		if got := c.snapshot()[1]; got != 25 {
			t.Errorf("watcher reads %d after the change", got)
		}
	}()
	go func() { // the statistics page
		defer wg.Done()
		sum := 0
		for _, v := range c.snapshot() {
			sum += v
		}
		if sum != 60 && sum != 65 {
			t.Errorf("limits add up to %d", sum)
		}
	}()
	go func() { // the administrator
		defer wg.Done()
		set(1, 25)
	}()
	wg.Wait()
}

func TestBugCowConfig(t *testing.T) {
	c := &cowConfig{limits: []int{10, 20, 30}}
	cowScene(t, c, c.set)
}

func TestFixedCowConfig(t *testing.T) {
	c := &cowConfig{limits: []int{10, 20, 30}}
	cowScene(t, c, c.setFixed)
}
