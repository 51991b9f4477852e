//go:build corpus

package corpus

import (
	"sync"
	"testing"
)

// A hub sends messages to its clients. A broadcast holds the lock of the hub and takes the lock of each client. A
// client that closes holds its own lock and takes the lock of the hub to remove itself. Each can hold the lock the
// other wants.
//
// Class: abba
// Expect: deadlock

type socketHub struct {
	mu      sync.Mutex
	clients []*socketClient
}

func (h *socketHub) join() *socketClient {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := &socketClient{hub: h}
	h.clients = append(h.clients, c)
	return c
}

func (h *socketHub) remove(c *socketClient) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, have := range h.clients {
		if have == c {
			h.clients = append(h.clients[:i], h.clients[i+1:]...)
			return
		}
	}
}

func (h *socketHub) broadcast(msg string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.clients {
		c.push(msg)
	}
}

type socketClient struct {
	hub    *socketHub
	mu     sync.Mutex
	closed bool
	queue  []string
}

func (c *socketClient) push(msg string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.queue = append(c.queue, msg)
	}
}

func (c *socketClient) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.closed = true
	c.hub.remove(c)
}

func (c *socketClient) closeFixed() {
	c.mu.Lock()
	was := c.closed
	c.closed = true
	c.mu.Unlock()
	if !was {
		c.hub.remove(c)
	}
}

func runSocketHub(t *testing.T, closeClient func(*socketClient)) {
	h := &socketHub{}
	stays, leaves := h.join(), h.join()
	var wg sync.WaitGroup
	wg.Go(func() { closeClient(leaves) })
	h.broadcast("hello")
	wg.Wait()
	if n := len(stays.queue); n != 1 {
		t.Errorf("the client that stays has %d messages, want 1", n)
	}
}

func TestBugSocketHub(t *testing.T) {
	runSocketHub(t, (*socketClient).close)
}

func TestFixedSocketHub(t *testing.T) {
	runSocketHub(t, (*socketClient).closeFixed)
}
