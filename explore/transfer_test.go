package explore_test

import (
	"sync"
	"testing"

	"github.com/coir-go/coir/explore"
)

type account struct {
	mu      sync.Mutex
	balance int
}

// transfer locks first before second. All callers must pass the accounts in the same order, or coir test finds a
// deadlock here.
func transfer(first, second *account, amount int) {
	first.mu.Lock()
	defer first.mu.Unlock()
	second.mu.Lock()
	defer second.mu.Unlock()
	first.balance -= amount
	second.balance += amount
}

// An example of a test with an explored part.
func TestTransfer(t *testing.T) {
	amounts := []int{3, -1} // an expensive setup runs here, once
	explore.Test(t, func(t *testing.T) {
		var a, b account
		var wg sync.WaitGroup
		for _, amount := range amounts {
			wg.Go(func() { transfer(&a, &b, amount) })
		}
		wg.Wait()
		if a.balance != -2 || b.balance != 2 {
			t.Errorf("%d and %d, want -2 and 2", a.balance, b.balance)
		}
	})
}
