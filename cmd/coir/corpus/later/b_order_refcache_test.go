//go:build corpus

package later

// A cache shares connections and counts their users. The first user puts an entry into the map and dials outside
// the lock so as not to hold up other keys. A second user of the same key finds the entry, counts itself in and
// goes on to use a connection that is not there yet.
//
// Class: order
// Expect: panic

import (
	"sync"
	"testing"
)

type refcConn struct {
	mu      sync.Mutex
	queries int
	closed  bool
}

func (c *refcConn) query() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queries++
	return !c.closed
}

type refcEntry struct {
	refs  int
	conn  *refcConn
	ready chan struct{}
}

type refcPool struct {
	mu      sync.Mutex
	entries map[string]*refcEntry
}

func (p *refcPool) acquire(key string) *refcEntry {
	p.mu.Lock()
	e, ok := p.entries[key]
	if ok {
		e.refs++
		p.mu.Unlock()
		return e
	}
	e = &refcEntry{refs: 1, ready: make(chan struct{})}
	p.entries[key] = e
	p.mu.Unlock()

	conn := &refcConn{} // stands for a slow dial
	p.mu.Lock()
	e.conn = conn
	p.mu.Unlock()
	close(e.ready)
	return e
}

// acquireFixed returns only when the connection has been made.
func (p *refcPool) acquireFixed(key string) *refcEntry {
	e := p.acquire(key)
	<-e.ready
	return e
}

func (p *refcPool) connOf(e *refcEntry) *refcConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	return e.conn
}

func (p *refcPool) release(key string, e *refcEntry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.refs--
	if e.refs > 0 {
		return
	}
	delete(p.entries, key)
	e.conn.mu.Lock()
	e.conn.closed = true
	e.conn.mu.Unlock()
}

func refcUsers(t *testing.T, acquire func(*refcPool, string) *refcEntry) {
	p := &refcPool{entries: map[string]*refcEntry{}}
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			e := acquire(p, "db")
			if !p.connOf(e).query() {
				t.Error("query on a closed connection")
			}
			p.release("db", e)
		})
	}
	wg.Wait()
	if len(p.entries) != 0 {
		t.Errorf("%d entries left in the cache", len(p.entries))
	}
}

func TestBugRefCacheDial(t *testing.T) { refcUsers(t, (*refcPool).acquire) }

func TestFixedRefCacheDial(t *testing.T) { refcUsers(t, (*refcPool).acquireFixed) }
