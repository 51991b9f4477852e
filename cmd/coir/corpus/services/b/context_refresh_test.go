//go:build corpus

package b

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// A price service asks an exchange for the price of the day at the first request and keeps it. It asks with its lock
// held and without a timeout. If the connection to the exchange hangs, the request waits for ever and every other
// one waits for the lock. The corrected service asks without the lock and gives up after ten seconds, and its clients
// after a minute. Then the client reports an error, which is allowed.
//
// Class: context
// Expect: deadlock
// Faults: net
type priceService struct {
	exchange string
	client   *http.Client
	lookup   func(s *priceService) (string, error)

	mu    sync.Mutex
	price string
}

// priceFetch returns the body of a page that is there.
func priceFetch(client *http.Client, url string) (string, error) {
	resp, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %s", resp.Status)
	}
	return string(body), err
}

func priceLookup(s *priceService) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.price != "" {
		return s.price, nil
	}
	price, err := priceFetch(s.client, s.exchange)
	if err != nil {
		return "", err
	}
	s.price = price
	return price, nil
}

func priceLookupFixed(s *priceService) (string, error) {
	s.mu.Lock()
	price := s.price
	s.mu.Unlock()
	if price != "" {
		return price, nil
	}
	price, err := priceFetch(s.client, s.exchange)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.price = price
	return price, nil
}

func (s *priceService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	price, err := s.lookup(s)
	if err != nil {
		http.Error(w, "no price", http.StatusBadGateway)
		return
	}
	io.WriteString(w, price)
}

func priceRun(t *testing.T, lookup func(s *priceService) (string, error), patience, longPatience time.Duration) {
	exchange := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "42.00")
	}))
	inner := &http.Transport{}
	s := &priceService{exchange: exchange.URL, client: &http.Client{Transport: inner, Timeout: patience}, lookup: lookup}
	front := httptest.NewServer(s)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			outer := &http.Transport{}
			defer outer.CloseIdleConnections()
			price, err := priceFetch(&http.Client{Transport: outer, Timeout: longPatience}, front.URL)
			if err == nil && price != "42.00" {
				t.Errorf("price %q", price)
			}
		})
	}
	wg.Wait()
	front.CloseClientConnections()
	front.Close()
	inner.CloseIdleConnections()
	exchange.CloseClientConnections()
	exchange.Close()
}

func TestBugRefreshHangs(t *testing.T) {
	priceRun(t, priceLookup, 0, 0)
}

func TestFixedRefreshHangs(t *testing.T) {
	priceRun(t, priceLookupFixed, 10*time.Second, time.Minute)
}
