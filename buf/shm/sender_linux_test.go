package shm

import (
	"context"
	"testing"
	"time"
)

// asleep returns the number of calls that wait for the receiver to return buffers, and how many buffers they wait for.
func (l *sharedSender) asleep() (calls int, n uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiters, l.ring.own.until.Load() - l.ring.popped
}

// If two calls wait, the second one gets its buffer too, after a while, even if the receiver does not return half of
// them.
func TestSecondWaitingSenderIsNotForgotten(t *testing.T) {
	const n = 8
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	s, r := link(t, n, WithShared())
	l := s.link.(*sharedSender)
	for range n {
		if err := s.Send(ctx, with(ctx, t, s, "text")); err != nil {
			t.Fatal(err)
		}
	}
	sent := make(chan error, 2)
	for range cap(sent) {
		go func() { sent <- produce(ctx, s, 1) }()
	}
	until(t, "both wait for one buffer", func() bool {
		calls, n := l.asleep()
		return calls == 2 && n == 1
	})
	for range cap(sent) { // sent buffers stay in the ring, so that the receiver does not wake the sender early
		b, err := r.Recv(ctx)
		if err != nil {
			t.Fatal(err)
		}
		b.Release()
		if err := <-sent; err != nil {
			t.Fatalf("%v; the sender has %+v", err, s.Stats())
		}
	}
}
