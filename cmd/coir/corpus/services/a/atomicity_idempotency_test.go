//go:build corpus

package a

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
)

// A payment service makes one payment for each idempotency key and gives the same receipt to every request with that
// key. It looks for a receipt, makes the payment and records the receipt, in three steps. If a request is delivered
// twice and both deliveries look before either has recorded, there are two payments.
//
// Class: atomicity
// Expect: fail
type idemService struct {
	reserve bool // record the key before the payment is made

	mu       sync.Mutex
	payments int
	receipts map[string]string
	running  map[string]chan struct{}
}

func (s *idemService) find(key string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	receipt, ok := s.receipts[key]
	return receipt, ok
}

func (s *idemService) pay() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.payments++
	return fmt.Sprintf("receipt %d", s.payments)
}

func (s *idemService) record(key, receipt string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.receipts[key] = receipt
}

// claim reports whether the caller is to make the payment. If it is not, the payment is made when claim returns.
func (s *idemService) claim(key string) bool {
	s.mu.Lock()
	if done := s.running[key]; done != nil {
		s.mu.Unlock()
		<-done
		return false
	}
	s.running[key] = make(chan struct{})
	s.mu.Unlock()
	return true
}

func (s *idemService) finish(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.running[key])
}

func (s *idemService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Idempotency-Key")
	if s.reserve && s.claim(key) {
		defer s.finish(key)
	}
	receipt, ok := s.find(key)
	if !ok {
		receipt = s.pay()
		s.record(key, receipt)
	}
	io.WriteString(w, receipt)
}

func idemDeliver(t *testing.T, c *http.Client, url, key string) {
	req, err := http.NewRequest(http.MethodPost, url, nil)
	if err != nil {
		t.Error(err)
		return
	}
	req.Header.Set("Idempotency-Key", key)
	resp, err := c.Do(req)
	if err != nil {
		t.Error(err)
		return
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || len(body) == 0 {
		t.Errorf("got %q, %v", body, err)
	}
}

func idemScene(t *testing.T, reserve bool) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &idemService{reserve: reserve, receipts: map[string]string{}, running: map[string]chan struct{}{}}
	srv := &http.Server{Handler: s}
	var serving sync.WaitGroup
	serving.Go(func() { srv.Serve(ln) })

	transport := &http.Transport{}
	client := &http.Client{Transport: transport}
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { idemDeliver(t, client, "http://"+ln.Addr().String()+"/pay", "order-17") })
	}
	wg.Wait()
	transport.CloseIdleConnections()
	srv.Close()
	serving.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.payments != 1 {
		t.Errorf("%d payments for one key", s.payments)
	}
}

func TestBugIdempotency(t *testing.T) { idemScene(t, false) }

func TestFixedIdempotency(t *testing.T) { idemScene(t, true) }
