//go:build corpus

package corpus

import (
	"errors"
	"sync"
	"testing"
)

// A server waits at shutdown for the requests it has accepted and closes its store then. A request looks whether the
// server is closed and adds itself to the wait group afterwards. If the whole shutdown falls between the two, the wait
// has nothing to wait for, and the request meets a closed store.
//
// Class: waitgroup
// Expect: fail

var (
	errDrainServerClosed = errors.New("server is closed")
	errDrainStoreClosed  = errors.New("store is closed")
)

type drainStore struct {
	mu     sync.Mutex
	closed bool
	rows   []string
}

func (s *drainStore) put(row string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errDrainStoreClosed
	}
	s.rows = append(s.rows, row)
	return nil
}

func (s *drainStore) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

type drainServer struct {
	store    drainStore
	mu       sync.Mutex
	closed   bool
	requests sync.WaitGroup
}

func (s *drainServer) begin() bool {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return false
	}
	s.requests.Add(1)
	return true
}

func (s *drainServer) beginFixed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.requests.Add(1)
	return true
}

func (s *drainServer) handle(begin func(*drainServer) bool, row string) error {
	if !begin(s) {
		return errDrainServerClosed
	}
	defer s.requests.Done()
	return s.store.put(row)
}

func (s *drainServer) shutdown() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.requests.Wait()
	s.store.close()
}

func runDrainServer(t *testing.T, begin func(*drainServer) bool) {
	s := &drainServer{}
	answer := make(chan error, 1)
	go func() { answer <- s.handle(begin, "order 1") }()
	s.shutdown()
	if err := <-answer; err != nil && err != errDrainServerClosed {
		t.Errorf("an accepted request failed: %v", err)
	}
}

func TestBugDrainServer(t *testing.T) {
	runDrainServer(t, (*drainServer).begin)
}

func TestFixedDrainServer(t *testing.T) {
	runDrainServer(t, (*drainServer).beginFixed)
}
