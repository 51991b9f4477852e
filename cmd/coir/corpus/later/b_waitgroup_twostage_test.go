//go:build corpus

package later

// A service shuts down in two stages: first it stops taking jobs and waits for those under way, then it closes its
// store. submit reads the draining flag, releases the lock and only then adds the job to the wait group. A job admitted
// in that gap is not waited for and may write to a closed store.
//
// Class: waitgroup
// Expect: fail

import (
	"errors"
	"sync"
	"testing"
)

var errStgClosed = errors.New("store is closed")

type stgStore struct {
	mu     sync.Mutex
	closed bool
	rows   []int
}

func (s *stgStore) write(v int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errStgClosed
	}
	s.rows = append(s.rows, v)
	return nil
}

func (s *stgStore) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

type stgService struct {
	mu       sync.Mutex
	draining bool
	jobs     sync.WaitGroup
	store    stgStore
}

func (s *stgService) start(v int) <-chan error {
	result := make(chan error, 1)
	go func() {
		defer s.jobs.Done()
		result <- s.store.write(v)
	}()
	return result
}

// submit starts a job and returns where its result will be, or nil if the service is shutting down.
func (s *stgService) submit(v int) <-chan error {
	s.mu.Lock()
	draining := s.draining
	s.mu.Unlock()
	if draining {
		return nil
	}
	s.jobs.Add(1)
	return s.start(v)
}

func (s *stgService) submitFixed(v int) <-chan error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return nil
	}
	s.jobs.Add(1)
	return s.start(v)
}

func (s *stgService) shutdown() {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	s.jobs.Wait()
	s.store.close()
}

func stgScene(t *testing.T, submit func(*stgService, int) <-chan error) {
	s := &stgService{}
	var clients sync.WaitGroup
	for c := range 2 {
		clients.Add(1)
		go func() {
			defer clients.Done()
			result := submit(s, c)
			if result == nil {
				return // turned away, which is fine
			}
			if err := <-result; err != nil {
				t.Errorf("accepted job %d failed: %v", c, err)
			}
		}()
	}
	s.shutdown()
	clients.Wait()
}

func TestBugTwoStageShutdown(t *testing.T) { stgScene(t, (*stgService).submit) }

func TestFixedTwoStageShutdown(t *testing.T) { stgScene(t, (*stgService).submitFixed) }
