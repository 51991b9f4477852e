//go:build corpus

package later

import (
	"sync"
	"testing"
)

// A connection pool keeps at most two idle connections and dials a new one when none is idle. Release puts a
// connection back; if the idle list is full it calls discard, which takes the pool's lock that Release still holds.
// Two clients can never fill the idle list beyond its limit, but three that hold a connection at the same time can.
//
// Class: doublelock
// Expect: deadlock
type idleConn struct{ id int }

type idlePool struct {
	mu      sync.Mutex
	idle    []*idleConn
	maxIdle int
	open    int
	nextID  int
}

func (p *idlePool) Acquire() *idleConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.idle); n > 0 {
		c := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return c
	}
	p.open++
	p.nextID++
	return &idleConn{id: p.nextID}
}

func (p *idlePool) discard(c *idleConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.id = 0
	p.open--
}

func (p *idlePool) Release(c *idleConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) >= p.maxIdle {
		p.discard(c)
		return
	}
	p.idle = append(p.idle, c)
}

func (p *idlePool) ReleaseOnce(c *idleConn) {
	p.mu.Lock()
	if len(p.idle) < p.maxIdle {
		p.idle = append(p.idle, c)
		p.mu.Unlock()
		return
	}
	p.mu.Unlock()
	p.discard(c)
}

func runIdlePool(t *testing.T, p *idlePool, clients int, release func(*idleConn)) {
	var wg sync.WaitGroup
	for i := 0; i < clients; i++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			c := p.Acquire()
			if c.id == 0 {
				t.Error("got a discarded connection")
			}
			release(c)
		}()
	}
	wg.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open != len(p.idle) {
		t.Errorf("%d connections open, %d idle", p.open, len(p.idle))
	}
}

func TestBugIdlePool(t *testing.T) {
	p := &idlePool{maxIdle: 2}
	runIdlePool(t, p, 3, p.Release)
}

func TestFixedIdlePool(t *testing.T) {
	p := &idlePool{maxIdle: 2}
	runIdlePool(t, p, 3, p.ReleaseOnce)
}
