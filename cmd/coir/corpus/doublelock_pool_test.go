//go:build corpus

package corpus

import (
	"errors"
	"sync"
	"testing"
)

// A connection pool counts its open connections. A connection that is put back after the pool was closed is closed at
// once. Closing a connection takes the lock of the pool to forget it, and put holds that lock. So put blocks for ever
// if the pool is closed between get and put.
//
// Class: doublelock
// Expect: deadlock

var errConnPoolClosed = errors.New("pool is closed")

type poolConn struct {
	pool *connPool
}

func (c *poolConn) close() {
	c.pool.forget(c)
}

type connPool struct {
	mu     sync.Mutex
	idle   []*poolConn
	open   map[*poolConn]bool
	closed bool
}

func (p *connPool) get() (*poolConn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errConnPoolClosed
	}
	if n := len(p.idle); n > 0 {
		c := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return c, nil
	}
	c := &poolConn{pool: p}
	p.open[c] = true
	return c, nil
}

func (p *connPool) put(c *poolConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		c.close()
		return
	}
	p.idle = append(p.idle, c)
}

func (p *connPool) putFixed(c *poolConn) {
	p.mu.Lock()
	closed := p.closed
	if !closed {
		p.idle = append(p.idle, c)
	}
	p.mu.Unlock()
	if closed {
		c.close()
	}
}

func (p *connPool) forget(c *poolConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
}

func (p *connPool) close() {
	p.mu.Lock()
	p.closed = true
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	for _, c := range idle {
		c.close()
	}
}

func runConnPool(t *testing.T, put func(*connPool, *poolConn)) {
	p := &connPool{open: make(map[*poolConn]bool)}
	var wg sync.WaitGroup
	wg.Go(func() {
		c, err := p.get()
		if err != nil {
			return
		}
		put(p, c)
	})
	p.close()
	wg.Wait()
	if n := len(p.open); n != 0 {
		t.Errorf("%d connections left open", n)
	}
}

func TestBugConnPool(t *testing.T) {
	runConnPool(t, (*connPool).put)
}

func TestFixedConnPool(t *testing.T) {
	runConnPool(t, (*connPool).putFixed)
}
