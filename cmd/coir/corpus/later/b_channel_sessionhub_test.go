//go:build corpus

package later

// A hub keeps the open sessions and broadcasts messages to them. To keep the lock short, broadcast copies the list
// of sessions and sends outside the lock, while leave closes the session's channel as soon as it is off the list.
// A session that hangs up between the copy and the send makes the hub send on a closed channel.
//
// Class: channel
// Expect: panic

import (
	"fmt"
	"sync"
	"testing"
)

type hubSession struct{ out chan string }

type hubRoom struct {
	mu       sync.Mutex
	sessions []*hubSession
}

func (h *hubRoom) join() *hubSession {
	s := &hubSession{out: make(chan string, 2)}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sessions = append(h.sessions, s)
	return s
}

func (h *hubRoom) leave(s *hubSession) {
	h.mu.Lock()
	h.dropLocked(s)
	h.mu.Unlock()
}

func (h *hubRoom) dropLocked(s *hubSession) {
	for i, other := range h.sessions {
		if other == s {
			h.sessions = append(h.sessions[:i:i], h.sessions[i+1:]...)
			close(s.out)
			return
		}
	}
}

// broadcast sends msg to all sessions and drops those that are too slow.
func (h *hubRoom) broadcast(msg string) {
	h.mu.Lock()
	targets := append([]*hubSession(nil), h.sessions...)
	h.mu.Unlock()
	for _, s := range targets {
		select {
		case s.out <- msg:
		default:
			h.leave(s)
		}
	}
}

// broadcastFixed sends under the lock; the sends never block, so the lock is still held only for a short time.
func (h *hubRoom) broadcastFixed(msg string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range append([]*hubSession(nil), h.sessions...) {
		select {
		case s.out <- msg:
		default:
			h.dropLocked(s)
		}
	}
}

// hubEvening runs two sessions, of which the first hangs up after its first message.
func hubEvening(t *testing.T, broadcast func(*hubRoom, string)) {
	h := &hubRoom{}
	var clients sync.WaitGroup
	for i, limit := range []int{1, 10} {
		s := h.join()
		clients.Add(1)
		go func() {
			defer clients.Done()
			seen := 0
			for range s.out {
				seen++
				if seen == limit {
					h.leave(s)
				}
			}
			if seen > 3 {
				t.Errorf("client %d saw %d messages of 3", i, seen)
			}
		}()
	}
	for i := range 3 {
		broadcast(h, fmt.Sprint("news ", i))
	}
	h.mu.Lock()
	for len(h.sessions) > 0 {
		h.dropLocked(h.sessions[0])
	}
	h.mu.Unlock()
	clients.Wait()
}

func TestBugSessionHub(t *testing.T) { hubEvening(t, (*hubRoom).broadcast) }

func TestFixedSessionHub(t *testing.T) { hubEvening(t, (*hubRoom).broadcastFixed) }
