//go:build corpus

package later

// The holder of a lease renews it in the background at every tick. To give the lease up, it first deletes the lease
// from the registry and then stops the renewer. A tick in between writes the lease back, and the next instance
// finds it taken by a holder that no longer exists.
//
// Class: order
// Expect: fail

import (
	"sync"
	"testing"
	"time"
)

type leasRegistry struct {
	mu     sync.Mutex
	owners map[string]string
}

// acquire takes the lease if it is free and says whether it did.
func (r *leasRegistry) acquire(name, owner string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.owners[name] != "" {
		return false
	}
	r.owners[name] = owner
	return true
}

func (r *leasRegistry) renew(name, owner string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.owners[name] = owner
}

func (r *leasRegistry) remove(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.owners, name)
}

type leasHolder struct {
	registry    *leasRegistry
	name, owner string
	quit, done  chan struct{}
}

func newLeasHolder(r *leasRegistry, name, owner string) *leasHolder {
	h := &leasHolder{registry: r, name: name, owner: owner, quit: make(chan struct{}), done: make(chan struct{})}
	go h.renewer()
	return h
}

func (h *leasHolder) renewer() {
	defer close(h.done)
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			h.registry.renew(h.name, h.owner)
		case <-h.quit:
			return
		}
	}
}

func (h *leasHolder) release() {
	h.registry.remove(h.name)
	close(h.quit)
	<-h.done
}

func (h *leasHolder) releaseFixed() {
	close(h.quit)
	<-h.done
	h.registry.remove(h.name)
}

func leasScene(t *testing.T, release func(*leasHolder)) {
	r := &leasRegistry{owners: map[string]string{}}
	if !r.acquire("leader", "first") {
		t.Fatal("lease taken in an empty registry")
	}
	h := newLeasHolder(r, "leader", "first")
	time.Sleep(2 * time.Millisecond) // the leader's work
	release(h)
	if !r.acquire("leader", "second") {
		t.Errorf("lease still held by %q after its release", r.owners["leader"])
	}
}

func TestBugLeaseRenewer(t *testing.T) { leasScene(t, (*leasHolder).release) }

func TestFixedLeaseRenewer(t *testing.T) { leasScene(t, (*leasHolder).releaseFixed) }
