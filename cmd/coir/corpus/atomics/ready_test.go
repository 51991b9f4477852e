//go:build corpus

package atomics

import (
	"sync"
	"sync/atomic"
	"testing"
)

// A cache sets its ready flag and then stores its entries. A reader that comes in between follows a nil pointer.
//
// Class: order
// Expect: panic

type priceTable struct {
	euro int
}

type priceCache struct {
	ready atomic.Bool
	table atomic.Pointer[priceTable]
}

func (c *priceCache) fill() {
	c.ready.Store(true)
	c.table.Store(&priceTable{euro: 3})
}

func (c *priceCache) fillFixed() {
	c.table.Store(&priceTable{euro: 3})
	c.ready.Store(true)
}

func (c *priceCache) price() int {
	if !c.ready.Load() {
		return 0
	}
	return c.table.Load().euro
}

func runPriceCache(t *testing.T, fill func(*priceCache)) {
	c := &priceCache{}
	var wg sync.WaitGroup
	wg.Go(func() { fill(c) })
	if p := c.price(); p != 0 && p != 3 {
		t.Errorf("the price is %d", p)
	}
	wg.Wait()
}

func TestBugPriceCache(t *testing.T) {
	runPriceCache(t, (*priceCache).fill)
}

func TestFixedPriceCache(t *testing.T) {
	runPriceCache(t, (*priceCache).fillFixed)
}
