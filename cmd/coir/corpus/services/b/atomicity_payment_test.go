//go:build corpus

package b

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// A payment service charges a customer with each POST. The client posts again when the connection breaks. If it breaks
// after the charge and before the client has read the answer, the customer pays twice. The corrected client sends the
// same key with every attempt, and the service charges once for a key. A client that gets no answer at all reports
// an error, and then the customer may have paid or not.
//
// Class: atomicity
// Expect: fail
// Faults: net
type payServer struct {
	mu      sync.Mutex
	seen    map[string]bool
	charges map[string]int
}

func (s *payServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	customer, err := io.ReadAll(r.Body)
	if err != nil || len(customer) != len("ann") {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	if s.charge(string(customer), r.Header.Get("Idempotency-Key")) {
		fmt.Fprintf(w, "charged %s\n", customer)
	} else {
		fmt.Fprintf(w, "charged %s before\n", customer)
	}
}

func (s *payServer) charge(customer, key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if key != "" {
		if s.seen[key] {
			return false
		}
		s.seen[key] = true
	}
	s.charges[customer]++
	return true
}

type payClient struct {
	http *http.Client
	url  string
}

// post makes one attempt.
func (c *payClient) post(customer, key string) error {
	req, err := http.NewRequest("POST", c.url, strings.NewReader(customer))
	if err != nil {
		return err
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(string(body), "charged") {
		return fmt.Errorf("answer %q", body)
	}
	return nil
}

// pay tries again after a broken connection, though not after a timeout.
func (c *payClient) pay(customer string) error {
	var err error
	for range 3 {
		if err = c.post(customer, ""); err == nil {
			return nil
		}
		var ne net.Error
		if errors.As(err, &ne) && ne.Timeout() {
			return err
		}
	}
	return err
}

// payFixed tries again after every error.
func (c *payClient) payFixed(customer string) error {
	var err error
	for range 3 {
		if err = c.post(customer, "order-1-of-"+customer); err == nil {
			return nil
		}
	}
	return err
}

func payRun(t *testing.T, pay func(c *payClient, customer string) error) {
	s := &payServer{seen: map[string]bool{}, charges: map[string]int{}}
	srv := httptest.NewServer(s)
	customers := []string{"ann", "bob"}
	errs := make([]error, len(customers))
	var wg sync.WaitGroup
	for i, customer := range customers {
		wg.Go(func() {
			tr := &http.Transport{}
			defer tr.CloseIdleConnections()
			c := &payClient{http: &http.Client{Transport: tr, Timeout: 30 * time.Second}, url: srv.URL}
			errs[i] = pay(c, customer)
		})
	}
	wg.Wait()
	srv.CloseClientConnections()
	srv.Close()
	for i, customer := range customers {
		n := s.charges[customer]
		if n > 1 || n == 0 && errs[i] == nil {
			t.Errorf("%s charged %d times, error %v", customer, n, errs[i])
		}
	}
}

func TestBugPaymentRetry(t *testing.T) {
	payRun(t, (*payClient).pay)
}

func TestFixedPaymentRetry(t *testing.T) {
	payRun(t, (*payClient).payFixed)
}
