//go:build corpus

package atomics

import (
	"maps"
	"sync"
	"sync/atomic"
	"testing"
)

// A router keeps its routes in an atomic.Value and adds one to a copy. Two that are added at a time may both copy the
// same routes, and one of them is lost.
//
// Class: atomicity
// Expect: fail

type router struct {
	mu     sync.Mutex
	routes atomic.Value // of map[string]string
}

func (r *router) add(path, handler string) {
	next := maps.Clone(r.routes.Load().(map[string]string))
	next[path] = handler
	r.routes.Store(next)
}

func (r *router) addFixed(path, handler string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(path, handler)
}

func runRouter(t *testing.T, add func(r *router, path, handler string)) {
	r := &router{}
	r.routes.Store(map[string]string{})
	var wg sync.WaitGroup
	wg.Go(func() { add(r, "/cart", "cart") })
	wg.Go(func() { add(r, "/orders", "orders") })
	wg.Wait()
	if n := len(r.routes.Load().(map[string]string)); n != 2 {
		t.Errorf("%d routes, want 2", n)
	}
}

func TestBugRouter(t *testing.T) {
	runRouter(t, (*router).add)
}

func TestFixedRouter(t *testing.T) {
	runRouter(t, (*router).addFixed)
}
