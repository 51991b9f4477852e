//go:build corpus

package corpus

import (
	"sync"
	"testing"
)

// A service makes its client when it is first needed. To save the lock later, it looks for the client without the
// lock first. That look is not ordered with the assignment under the lock by another goroutine, and the two race.
//
// Class: atomicity
// Expect: race

type searchClient struct {
	addr string
}

type searchService struct {
	mu     sync.Mutex
	once   sync.Once
	client *searchClient
}

func (s *searchService) get() *searchClient {
	if s.client == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.client == nil {
			s.client = &searchClient{addr: "search:9200"}
		}
	}
	return s.client
}

func (s *searchService) getFixed() *searchClient {
	s.once.Do(func() {
		s.client = &searchClient{addr: "search:9200"}
	})
	return s.client
}

func runSearchService(t *testing.T, get func(*searchService) *searchClient) {
	s := &searchService{}
	var got [2]*searchClient
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() { got[i] = get(s) })
	}
	wg.Wait()
	if got[0] == nil || got[0] != got[1] {
		t.Error("the service made two clients")
	}
}

func TestBugSearchService(t *testing.T) {
	runSearchService(t, (*searchService).get)
}

func TestFixedSearchService(t *testing.T) {
	runSearchService(t, (*searchService).getFixed)
}
