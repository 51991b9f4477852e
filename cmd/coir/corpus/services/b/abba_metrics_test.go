//go:build corpus

package b

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// A store counts its keys and its writes. A write takes the lock of the store and then the lock of the counters. The
// metrics page takes the lock of the counters first, so that all numbers belong together, and then asks the store for
// its size. When a write and a metrics request have taken their first lock each, both wait for ever.
//
// Class: abba
// Expect: deadlock
type metricCounters struct {
	mu     sync.Mutex
	writes int
}

func (c *metricCounters) addWrite() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writes++
}

type metricStore struct {
	counters metricCounters
	report   func(s *metricStore) (keys, writes int)

	mu   sync.Mutex
	data map[string]string
}

func (s *metricStore) put(key, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.data[key] = value
	s.counters.addWrite()
}

func (s *metricStore) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.data)
}

func metricReport(s *metricStore) (keys, writes int) {
	s.counters.mu.Lock()
	defer s.counters.mu.Unlock()
	return s.size(), s.counters.writes
}

// metricReportFixed takes the locks in the order in which a write takes them.
func metricReportFixed(s *metricStore) (keys, writes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counters.mu.Lock()
	defer s.counters.mu.Unlock()
	return len(s.data), s.counters.writes
}

func (s *metricStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/metrics" {
		keys, writes := s.report(s)
		fmt.Fprintf(w, "keys %d\nwrites %d\n", keys, writes)
		return
	}
	value, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.put(r.URL.Path, string(value))
}

func metricRun(t *testing.T, report func(s *metricStore) (keys, writes int)) {
	s := &metricStore{report: report, data: map[string]string{}}
	srv := httptest.NewServer(s)
	scrape := func() (keys, writes int) {
		resp, err := srv.Client().Get(srv.URL + "/metrics")
		if err != nil {
			t.Error(err)
			return 0, 0
		}
		defer resp.Body.Close()
		if _, err := fmt.Fscanf(resp.Body, "keys %d\nwrites %d\n", &keys, &writes); err != nil {
			t.Error(err)
		}
		return keys, writes
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		resp, err := srv.Client().Post(srv.URL+"/colour", "text/plain", http.NoBody)
		if err != nil {
			t.Error(err)
			return
		}
		resp.Body.Close()
	})
	if keys, writes := scrape(); keys != writes {
		t.Errorf("%d keys and %d writes, want the same", keys, writes)
	}
	wg.Wait()
	if keys, writes := scrape(); keys != 1 || writes != 1 {
		t.Errorf("%d keys and %d writes, want 1 and 1", keys, writes)
	}
	srv.Close()
}

func TestBugMetricsLocks(t *testing.T) {
	metricRun(t, metricReport)
}

func TestFixedMetricsLocks(t *testing.T) {
	metricRun(t, metricReportFixed)
}
