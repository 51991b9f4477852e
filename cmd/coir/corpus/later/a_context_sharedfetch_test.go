//go:build corpus

package later

import (
	"context"
	"sync"
	"testing"
)

// Requests for the same profile share one backend fetch: the first caller runs it, later ones wait for its result.
// The fetch runs under the first caller's context. If that client hangs up while the fetch is under way, a second
// client that joined in the meantime and is still there gets the first one's cancellation as its own error.
//
// Class: context
// Expect: fail
type sharedFetchCall struct {
	done chan struct{}
	val  string
	err  error
}

type sharedFetch struct {
	mu      sync.Mutex
	calls   map[string]*sharedFetchCall
	backend func(ctx context.Context, key string) (string, error)
	detach  bool
}

func (s *sharedFetch) Get(ctx context.Context, key string) (string, error) {
	s.mu.Lock()
	if c, ok := s.calls[key]; ok {
		s.mu.Unlock()
		select {
		case <-c.done:
			return c.val, c.err
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	c := &sharedFetchCall{done: make(chan struct{})}
	s.calls[key] = c
	s.mu.Unlock()

	fetchCtx := ctx
	if s.detach {
		fetchCtx = context.WithoutCancel(ctx)
	}
	c.val, c.err = s.backend(fetchCtx, key)

	s.mu.Lock()
	delete(s.calls, key)
	s.mu.Unlock()
	close(c.done)
	return c.val, c.err
}

func runSharedFetch(t *testing.T, detach bool) {
	answer := make(chan struct{})
	s := &sharedFetch{calls: map[string]*sharedFetchCall{}, detach: detach}
	s.backend = func(ctx context.Context, key string) (string, error) {
		select {
		case <-answer:
			return "profile of " + key, nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	hasty, hangUp := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Add(3)
	go func() {
		defer wg.Done()
		s.Get(hasty, "kim") // may well be cancelled
	}()
	go func() {
		defer wg.Done()
		if _, err := s.Get(context.Background(), "kim"); err != nil {
			t.Errorf("patient client got: %v", err)
		}
	}()
	go func() {
		defer wg.Done()
		close(answer)
	}()
	hangUp()
	wg.Wait()
}

func TestBugSharedFetch(t *testing.T) {
	runSharedFetch(t, false)
}

func TestFixedSharedFetch(t *testing.T) {
	runSharedFetch(t, true)
}
