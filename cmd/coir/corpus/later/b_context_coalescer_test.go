//go:build corpus

package later

// Requests for the same key share one load. The first caller runs the load with its own context, so when its
// deadline passes, the load is given up and everyone who joined gets that caller's deadline error. A caller without
// any deadline must never see one.
//
// Class: context
// Expect: fail

import (
	"context"
	"sync"
	"testing"
	"time"
)

type coalFlight struct {
	done chan struct{}
	val  string
	err  error
}

type coalGroup struct {
	mu      sync.Mutex
	flights map[string]*coalFlight
	loads   sync.WaitGroup
	load    func(ctx context.Context, key string) (string, error)
}

// enter returns the flight for key and whether the caller has to start it.
func (g *coalGroup) enter(key string) (*coalFlight, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if f, ok := g.flights[key]; ok {
		return f, false
	}
	f := &coalFlight{done: make(chan struct{})}
	g.flights[key] = f
	g.loads.Add(1)
	return f, true
}

func (g *coalGroup) run(ctx context.Context, key string, f *coalFlight) {
	defer g.loads.Done()
	f.val, f.err = g.load(ctx, key)
	g.mu.Lock()
	delete(g.flights, key)
	g.mu.Unlock()
	close(f.done)
}

func (f *coalFlight) wait(ctx context.Context) (string, error) {
	select {
	case <-f.done:
		return f.val, f.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (g *coalGroup) get(ctx context.Context, key string) (string, error) {
	f, leader := g.enter(key)
	if leader {
		g.run(ctx, key, f)
	}
	return f.wait(ctx)
}

func (g *coalGroup) getFixed(ctx context.Context, key string) (string, error) {
	f, leader := g.enter(key)
	if leader {
		go g.run(context.WithoutCancel(ctx), key, f)
	}
	return f.wait(ctx)
}

func coalSlowLoad(ctx context.Context, key string) (string, error) {
	reply := time.NewTimer(2 * time.Millisecond)
	defer reply.Stop()
	select {
	case <-reply.C:
		return "value of " + key, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func coalScene(t *testing.T, get func(*coalGroup, context.Context, string) (string, error)) {
	g := &coalGroup{flights: map[string]*coalFlight{}, load: coalSlowLoad}
	var callers sync.WaitGroup
	callers.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		get(g, ctx, "profile")
	})
	callers.Go(func() {
		if v, err := get(g, context.Background(), "profile"); err != nil {
			t.Errorf("caller without deadline got %q, %v", v, err)
		}
	})
	callers.Wait()
	g.loads.Wait()
}

func TestBugCoalescerDeadline(t *testing.T) { coalScene(t, (*coalGroup).get) }

func TestFixedCoalescerDeadline(t *testing.T) { coalScene(t, (*coalGroup).getFixed) }
