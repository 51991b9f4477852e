//go:build corpus

package corpus

import (
	"sync"
	"testing"
)

// A stream stops when its peer hangs up or when its owner says so. Stop asks whether the quit channel is closed and
// closes it if not. Both sides can ask before either closes, and the second close panics.
//
// Class: channel
// Expect: panic

type peerStream struct {
	in   chan string
	quit chan struct{}
	once sync.Once
	got  int
}

func newPeerStream() *peerStream {
	return &peerStream{in: make(chan string), quit: make(chan struct{})}
}

func (s *peerStream) stop() {
	select {
	case <-s.quit:
	default:
		close(s.quit)
	}
}

func (s *peerStream) stopFixed() {
	s.once.Do(func() { close(s.quit) })
}

func (s *peerStream) read(stop func(*peerStream)) {
	defer stop(s)
	for {
		select {
		case _, ok := <-s.in:
			if !ok {
				return
			}
			s.got++
		case <-s.quit:
			return
		}
	}
}

func runPeerStream(t *testing.T, stop func(*peerStream)) {
	s := newPeerStream()
	var wg sync.WaitGroup
	wg.Go(func() { s.read(stop) })
	s.in <- "hello"
	close(s.in)
	stop(s)
	wg.Wait()
	if s.got != 1 {
		t.Errorf("got %d messages, want 1", s.got)
	}
}

func TestBugPeerStream(t *testing.T) {
	runPeerStream(t, (*peerStream).stop)
}

func TestFixedPeerStream(t *testing.T) {
	runPeerStream(t, (*peerStream).stopFixed)
}
