//go:build corpus

package b

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
)

// A lease service names the leader that may write to a store. Each lease has a number, one higher than the lease
// before. A leader asks whether its lease still holds and then writes. If a second node takes the lease over and
// writes between these two steps, the store takes the old leader's write after the new one's. The store gets the
// number of the lease with each request, but the wrong one does not compare it.
//
// Class: atomicity
// Expect: fail
type leaseService struct {
	mu     sync.Mutex
	number int
}

func (l *leaseService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch r.URL.Path {
	case "/take":
		l.number++
		fmt.Fprint(w, l.number)
	case "/holds":
		fmt.Fprint(w, r.FormValue("lease") == strconv.Itoa(l.number))
	}
}

type leaseStore struct {
	fenced bool

	mu      sync.Mutex
	highest int
	written []int // the number of the lease of each write
}

func (s *leaseStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	lease, err := strconv.Atoi(r.FormValue("lease"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fenced && lease < s.highest {
		http.Error(w, "old lease", http.StatusConflict)
		return
	}
	s.highest = max(s.highest, lease)
	switch r.URL.Path {
	case "/read":
		fmt.Fprint(w, len(s.written))
	case "/write":
		s.written = append(s.written, lease)
	}
}

type leaseNode struct {
	t            *testing.T
	client       *http.Client
	lease, store string
}

// call returns the answer and whether it was OK.
func (n *leaseNode) call(url string) (string, bool) {
	resp, err := n.client.Post(url, "", nil)
	if err != nil {
		n.t.Error(err)
		return "", false
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		n.t.Error(err)
	}
	return string(body), resp.StatusCode == http.StatusOK
}

// write writes once unless the lease has gone to another node.
func (n *leaseNode) write(lease string) {
	if holds, _ := n.call(n.lease + "/holds?lease=" + lease); holds == "true" {
		n.call(n.store + "/write?lease=" + lease)
	}
}

// takeOver takes the lease, reads what the others have written and writes.
func (n *leaseNode) takeOver() {
	lease, _ := n.call(n.lease + "/take")
	for range 4 {
		if _, ok := n.call(n.store + "/read?lease=" + lease); !ok {
			n.t.Error("new leader cannot read")
		}
	}
	n.write(lease)
}

func leaseRun(t *testing.T, store *leaseStore) {
	leaseSrv := httptest.NewServer(&leaseService{})
	storeSrv := httptest.NewServer(store)
	n := &leaseNode{t: t, client: leaseSrv.Client(), lease: leaseSrv.URL, store: storeSrv.URL}
	first, _ := n.call(n.lease + "/take")
	var wg sync.WaitGroup
	wg.Go(func() { n.write(first) })
	wg.Go(n.takeOver)
	wg.Wait()
	n.client.CloseIdleConnections()
	storeSrv.Close()
	leaseSrv.Close()
	if len(store.written) == 0 || !slices.IsSorted(store.written) {
		t.Errorf("written under the leases %v, want a new leader's writes last", store.written)
	}
}

func TestBugLeaseFencing(t *testing.T) {
	leaseRun(t, &leaseStore{})
}

func TestFixedLeaseFencing(t *testing.T) {
	leaseRun(t, &leaseStore{fenced: true})
}
