//go:build corpus

package corpus

import (
	"sync"
	"testing"
)

// A price list is kept under a read-write lock. The total of a basket takes the read lock and asks for the price of
// each item, which takes the read lock again. When a writer asks for the lock between the two, the second read lock
// waits behind the writer, and the writer waits for the first read lock to be given back.
//
// Class: doublelock
// Expect: deadlock

type priceList struct {
	mu    sync.RWMutex
	cents map[string]int
}

func newPriceList() *priceList {
	return &priceList{cents: map[string]int{"bolt": 20, "nut": 10}}
}

func (p *priceList) set(item string, cents int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cents[item] = cents
}

func (p *priceList) price(item string) int {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.cents[item]
}

func (p *priceList) total(items ...string) int {
	p.mu.RLock()
	defer p.mu.RUnlock()
	sum := 0
	for _, item := range items {
		sum += p.price(item)
	}
	return sum
}

func (p *priceList) totalFixed(items ...string) int {
	p.mu.RLock()
	defer p.mu.RUnlock()
	sum := 0
	for _, item := range items {
		sum += p.cents[item]
	}
	return sum
}

func runPriceList(t *testing.T, total func(*priceList, ...string) int) {
	p := newPriceList()
	var wg sync.WaitGroup
	wg.Go(func() { p.set("bolt", 25) })
	if sum := total(p, "bolt", "nut"); sum != 30 && sum != 35 {
		t.Errorf("total = %d, want 30 or 35", sum)
	}
	wg.Wait()
}

func TestBugPriceList(t *testing.T) {
	runPriceList(t, (*priceList).total)
}

func TestFixedPriceList(t *testing.T) {
	runPriceList(t, (*priceList).totalFixed)
}
