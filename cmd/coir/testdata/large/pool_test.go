package large

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

// A pool of connections. Get takes an idle one, dials a new one if there are not too many, or waits in line. A health
// check takes idle connections out now and then, and closes those that are broken or were idle for too long.

type conn struct {
	id     int
	used   int
	broken bool
	since  time.Time // when it became idle
}

func (c *conn) ping() bool {
	time.Sleep(2 * time.Millisecond)
	return !c.broken
}

func (c *conn) query(n int) error {
	time.Sleep(time.Duration(3+n%4) * time.Millisecond)
	if c.used++; c.used%5 == 4 {
		c.broken = true
	}
	return nil
}

var errPoolClosed = errors.New("the pool is closed")

// pool is a pool of connections.
type pool struct {
	mu      sync.Mutex
	most    int
	open    int // connections, idle or not
	dialed  int
	idle    []*conn
	waiting []chan *conn // Gets, in order
	closed  bool
	stop    chan struct{}
	checks  sync.WaitGroup
}

func newPool(most int, every time.Duration) *pool {
	p := &pool{most: most, stop: make(chan struct{})}
	p.checks.Add(1)
	go p.check(every)
	return p
}

// get returns a connection.
func (p *pool) get(ctx context.Context) (*conn, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errPoolClosed
	}
	if n := len(p.idle); n > 0 {
		c := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return c, nil
	}
	if p.open < p.most {
		p.open++
		p.dialed++
		c := &conn{id: p.dialed}
		p.mu.Unlock()
		time.Sleep(time.Millisecond)
		return c, nil
	}
	turn := make(chan *conn, 1)
	p.waiting = append(p.waiting, turn)
	p.mu.Unlock()
	select {
	case c, ok := <-turn:
		if !ok {
			return nil, errPoolClosed
		}
		return c, nil
	case <-ctx.Done():
		p.leave(turn)
		return nil, ctx.Err()
	}
}

// leave takes a Get out of the line. If it has got a connection meanwhile, that goes back.
func (p *pool) leave(turn chan *conn) {
	p.mu.Lock()
	for i, other := range p.waiting {
		if other == turn {
			p.waiting = append(p.waiting[:i], p.waiting[i+1:]...)
			p.mu.Unlock()
			return
		}
	}
	p.mu.Unlock()
	if c, ok := <-turn; ok {
		p.put(c)
	}
}

// put gives a connection back: to the first in line, or to the idle ones.
func (p *pool) put(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.release(c)
}

// release is put, with the lock held.
func (p *pool) release(c *conn) {
	if p.closed {
		p.open--
		return
	}
	if len(p.waiting) > 0 {
		turn := p.waiting[0]
		p.waiting = p.waiting[1:]
		turn <- c
		return
	}
	c.since = time.Now()
	p.idle = append(p.idle, c)
}

// check checks idle connections every now and then.
func (p *pool) check(every time.Duration) {
	defer p.checks.Done()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p.sweep()
		case <-p.stop:
			return
		}
	}
}

// sweep pings the idle connections, and closes those that do not answer.
func (p *pool) sweep() {
	p.mu.Lock()
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	for _, c := range idle {
		healthy := c.ping() && time.Since(c.since) < time.Second
		p.mu.Lock()
		if healthy {
			p.release(c)
		} else {
			p.open--
		}
		p.mu.Unlock()
	}
}

// close ends the health checks, and all Gets that wait.
func (p *pool) close() {
	close(p.stop)
	p.checks.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, turn := range p.waiting {
		close(turn)
	}
	p.open -= len(p.idle)
	p.idle, p.waiting = nil, nil
}

// Expect: deadlock
func TestPool(t *testing.T) {
	const clients, queries = 9, 5
	p := newPool(3, 10*time.Millisecond)
	stats := make(chan int, 4)
	var wg, watch sync.WaitGroup
	for i := range clients {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for n := range queries {
				c, err := p.get(context.Background())
				if err != nil {
					t.Errorf("client %d: %v", i, err)
					return
				}
				if err := c.query(i + n); err != nil {
					t.Errorf("client %d: %v", i, err)
				}
				p.put(c)
				select {
				case stats <- c.id:
				default:
				}
				time.Sleep(time.Duration(1+i) * time.Millisecond)
			}
		}()
	}
	done := make(chan struct{})
	watch.Add(1)
	go func() {
		defer watch.Done()
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stats:
			case <-tick.C:
			case <-done:
				return
			}
		}
	}()
	wg.Wait()
	close(done)
	watch.Wait()
	p.close()
	if p.open != 0 {
		t.Errorf("%d connections are left", p.open)
	}
}
