//go:build corpus

package later

import (
	"errors"
	"sync"
	"testing"
	"time"
)

// A pool of leases hands a returned lease straight to the first waiter, through the waiter's own channel. A waiter that
// times out takes itself off the list and reports an error. If the lease was put into its channel just before the timer
// won the select, it is never taken out again and the pool is one lease short for good.
//
// Class: select
// Expect: fail
type leasePool struct {
	mu      sync.Mutex
	free    []int
	waiters []chan int
}

var errLeaseTimeout = errors.New("no lease in time")

func (p *leasePool) Put(id int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiters) > 0 {
		w := p.waiters[0]
		p.waiters = p.waiters[1:]
		w <- id // has room for one
		return
	}
	p.free = append(p.free, id)
}

// forget takes w off the waiting list and tells whether it was still there.
func (p *leasePool) forget(w chan int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, other := range p.waiters {
		if other == w {
			p.waiters = append(p.waiters[:i], p.waiters[i+1:]...)
			return true
		}
	}
	return false
}

func (p *leasePool) get(limit time.Duration, onTimeout func(w chan int) (int, error)) (int, error) {
	p.mu.Lock()
	if n := len(p.free); n > 0 {
		id := p.free[n-1]
		p.free = p.free[:n-1]
		p.mu.Unlock()
		return id, nil
	}
	w := make(chan int, 1)
	p.waiters = append(p.waiters, w)
	p.mu.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case id := <-w:
		return id, nil
	case <-timer.C:
		return onTimeout(w)
	}
}

func (p *leasePool) giveUp(w chan int) (int, error) {
	p.forget(w)
	return 0, errLeaseTimeout
}

func (p *leasePool) giveUpOrTake(w chan int) (int, error) {
	if p.forget(w) {
		return 0, errLeaseTimeout
	}
	return <-w, nil
}

func runLeasePool(t *testing.T, p *leasePool, onTimeout func(chan int) (int, error)) {
	var wg sync.WaitGroup
	for i := 0; i < 2; i++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if id, err := p.get(5*time.Millisecond, onTimeout); err == nil {
				p.Put(id)
			}
		}()
	}
	wg.Wait()
	if n := len(p.free); n != 1 {
		t.Errorf("%d free leases at the end, want 1", n)
	}
}

func TestBugLeasePool(t *testing.T) {
	p := &leasePool{free: []int{7}}
	runLeasePool(t, p, p.giveUp)
}

func TestFixedLeasePool(t *testing.T) {
	p := &leasePool{free: []int{7}}
	runLeasePool(t, p, p.giveUpOrTake)
}
