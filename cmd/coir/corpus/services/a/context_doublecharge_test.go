//go:build corpus

package a

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// A payment service charges orders. The settlement job closes the books for a second and a half, and a charge that
// comes meanwhile waits. The client gives an attempt up after one second and tries again. The service does not
// notice that the client has gone: if the settlement begins before the charge, both attempts are still waiting when
// it ends, and the order is charged twice.
//
// Class: context
// Expect: fail
type chargeService struct {
	mu      sync.Mutex
	charges []string
	paid    map[string]bool
	byOrder bool // charge an order only once
}

func (s *chargeService) charge(w http.ResponseWriter, r *http.Request) {
	order := r.URL.Query().Get("order")
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.byOrder || !s.paid[order] {
		s.paid[order] = true
		s.charges = append(s.charges, order)
	}
	io.WriteString(w, "charged")
}

func (s *chargeService) settle(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	time.Sleep(1500 * time.Millisecond) // the work of the settlement
	io.WriteString(w, "settled")
}

func (s *chargeService) health(w http.ResponseWriter, r *http.Request) {
	io.WriteString(w, "healthy")
}

func (s *chargeService) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /charge", s.charge)
	mux.HandleFunc("POST /settle", s.settle)
	mux.HandleFunc("POST /health", s.health)
	return mux
}

func chargePost(c *http.Client, url string) (string, error) {
	resp, err := c.Post(url, "text/plain", nil)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

// chargeClient pays an order. It waits one second for the first answer, and as long as it takes for the second.
func chargeClient(c *http.Client, url string) (string, error) {
	hasty := &http.Client{Transport: c.Transport, Timeout: time.Second}
	if answer, err := chargePost(hasty, url); err == nil {
		return answer, nil
	}
	return chargePost(c, url)
}

func chargeScene(t *testing.T, byOrder bool) {
	s := &chargeService{paid: map[string]bool{}, byOrder: byOrder}
	srv := httptest.NewServer(s.handler())
	var wg sync.WaitGroup
	wg.Go(func() {
		answer, err := chargeClient(srv.Client(), srv.URL+"/charge?order=17")
		if err != nil || answer != "charged" {
			t.Errorf("charge: %q, %v", answer, err)
		}
	})
	wg.Go(func() {
		for _, path := range []string{"/health", "/health", "/settle"} {
			if _, err := chargePost(srv.Client(), srv.URL+path); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	})
	wg.Wait()
	srv.Close() // waits for the handlers
	if len(s.charges) != 1 {
		t.Errorf("order 17 was charged %d times", len(s.charges))
	}
}

func TestBugDoubleCharge(t *testing.T) { chargeScene(t, false) }

func TestFixedDoubleCharge(t *testing.T) { chargeScene(t, true) }
