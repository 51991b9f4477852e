package bank

import (
	"sync"
	"testing"
)

type account struct {
	mu      sync.Mutex
	balance int
}

func transfer(from, to *account, amount int) {
	from.mu.Lock()
	defer from.mu.Unlock()
	to.mu.Lock()
	defer to.mu.Unlock()
	from.balance -= amount
	to.balance += amount
}

func TestTransfer(t *testing.T) {
	var a, b account
	var wg sync.WaitGroup
	wg.Add(2)
	go func() { defer wg.Done(); transfer(&a, &b, 1) }()
	go func() { defer wg.Done(); transfer(&b, &a, 1) }()
	wg.Wait()
}
