//go:build corpus

package corpus

import (
	"sync"
	"sync/atomic"
	"testing"
)

// A limiter lets a request through while credit is left. It reads the credit, looks up the price of the request under
// the lock of the tariff, compares and subtracts. Two requests can both read the credit that is enough for one.
//
// Class: atomicity
// Expect: fail

type callTariff struct {
	mu    sync.Mutex
	price map[string]int64
}

func (c *callTariff) of(method string) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.price[method]
}

type creditLimiter struct {
	credit atomic.Int64
	tariff callTariff
}

func newCreditLimiter(credit int64) *creditLimiter {
	l := &creditLimiter{tariff: callTariff{price: map[string]int64{"search": 3}}}
	l.credit.Store(credit)
	return l
}

func (l *creditLimiter) allow(method string) bool {
	credit := l.credit.Load()
	price := l.tariff.of(method)
	if credit < price {
		return false
	}
	l.credit.Add(-price)
	return true
}

func (l *creditLimiter) allowFixed(method string) bool {
	price := l.tariff.of(method)
	for {
		credit := l.credit.Load()
		if credit < price {
			return false
		}
		if l.credit.CompareAndSwap(credit, credit-price) {
			return true
		}
	}
}

func runCreditLimiter(t *testing.T, allow func(*creditLimiter, string) bool) {
	l := newCreditLimiter(5)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { allow(l, "search") })
	}
	wg.Wait()
	if credit := l.credit.Load(); credit != 2 {
		t.Errorf("credit is %d, want 2", credit)
	}
}

func TestBugCreditLimiter(t *testing.T) {
	runCreditLimiter(t, (*creditLimiter).allow)
}

func TestFixedCreditLimiter(t *testing.T) {
	runCreditLimiter(t, (*creditLimiter).allowFixed)
}
