// Package pay is the first program of README: a service whose handlers lock two accounts in different orders.
package pay

import (
	"net/http"
	"net/http/httptest"
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

func TestPay(t *testing.T) {
	shop, client := &account{balance: 100}, &account{balance: 100}
	mux := http.NewServeMux()
	mux.HandleFunc("/pay", func(http.ResponseWriter, *http.Request) { transfer(client, shop, 10) })
	mux.HandleFunc("/refund", func(http.ResponseWriter, *http.Request) { transfer(shop, client, 10) })
	server := httptest.NewServer(mux)
	defer server.Close()
	var wg sync.WaitGroup
	for _, path := range []string{"/pay", "/refund"} {
		wg.Go(func() {
			if resp, err := http.Get(server.URL + path); err == nil {
				resp.Body.Close()
			}
		})
	}
	wg.Wait()
}
