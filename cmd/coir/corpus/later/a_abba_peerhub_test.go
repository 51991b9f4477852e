//go:build corpus

package later

import (
	"sync"
	"testing"
)

// A hub sends messages to its peers: it holds its own lock and takes each peer's lock to fill the outbox. When a
// peer's connection breaks, the peer marks itself dead under its lock and removes itself from the hub, which takes
// the hub's lock. A broadcast that meets a breaking peer leaves each side waiting for the other's lock.
//
// Class: abba
// Expect: deadlock
type peerHub struct {
	mu    sync.Mutex
	peers map[string]*hubPeer
}

type hubPeer struct {
	mu     sync.Mutex
	name   string
	hub    *peerHub
	outbox []string
	dead   bool
}

func newPeerHub(names ...string) *peerHub {
	h := &peerHub{peers: map[string]*hubPeer{}}
	for _, n := range names {
		h.peers[n] = &hubPeer{name: n, hub: h}
	}
	return h
}

func (h *peerHub) Broadcast(msg string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	sent := 0
	for _, p := range h.peers {
		p.mu.Lock()
		if !p.dead {
			p.outbox = append(p.outbox, msg)
			sent++
		}
		p.mu.Unlock()
	}
	return sent
}

func (h *peerHub) remove(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.peers, name)
}

func (p *hubPeer) Fail() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return
	}
	p.dead = true
	p.outbox = nil
	p.hub.remove(p.name)
}

func (p *hubPeer) FailThenRemove() {
	p.mu.Lock()
	was := p.dead
	p.dead = true
	p.outbox = nil
	p.mu.Unlock()
	if !was {
		p.hub.remove(p.name)
	}
}

func runPeerHub(t *testing.T, fail func(*hubPeer)) {
	h := newPeerHub("ams", "fra")
	broken := h.peers["fra"]
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		fail(broken)
	}()
	if n := h.Broadcast("hello"); n < 1 || n > 2 {
		t.Errorf("sent to %d peers, want 1 or 2", n)
	}
	wg.Wait()
	if n := h.Broadcast("again"); n != 1 {
		t.Errorf("sent to %d peers after the failure, want 1", n)
	}
}

func TestBugPeerHub(t *testing.T) {
	runPeerHub(t, (*hubPeer).Fail)
}

func TestFixedPeerHub(t *testing.T) {
	runPeerHub(t, (*hubPeer).FailThenRemove)
}
