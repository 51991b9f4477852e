//go:build corpus

package later

// A token bucket hands tokens to its waiters in turn; a caller may also wait with a time limit. When the limit passes,
// the caller takes itself off the list and leaves. If a refill has given it the token in the same moment, that token is
// neither used nor put back, so the next waiter waits for good.
//
// Class: lost
// Expect: deadlock

import (
	"slices"
	"sync"
	"testing"
	"time"
)

type tbktBucket struct {
	mu      sync.Mutex
	tokens  int
	waiters []chan struct{}
}

// add puts n tokens into the bucket and serves the waiters, oldest first.
func (b *tbktBucket) add(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens += n
	for b.tokens > 0 && len(b.waiters) > 0 {
		close(b.waiters[0])
		b.waiters = b.waiters[1:]
		b.tokens--
	}
}

// request takes a token at once and returns nil, or queues up and returns the channel to wait on.
func (b *tbktBucket) request() chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tokens > 0 {
		b.tokens--
		return nil
	}
	w := make(chan struct{})
	b.waiters = append(b.waiters, w)
	return w
}

// cancel takes w off the list and says whether it was still there.
func (b *tbktBucket) cancel(w chan struct{}) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.waiters, w)
	if i < 0 {
		return false
	}
	b.waiters = slices.Delete(b.waiters, i, i+1)
	return true
}

func (b *tbktBucket) take() {
	if w := b.request(); w != nil {
		<-w
	}
}

func (b *tbktBucket) takeWithin(limit time.Duration, fixed bool) bool {
	w := b.request()
	if w == nil {
		return true
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-w:
		return true
	case <-timer.C:
		stillQueued := b.cancel(w)
		return fixed && !stillQueued
	}
}

// tbktScene has one token, a hurried caller that gives it back after use, and a patient one.
func tbktScene(fixed bool) {
	b := &tbktBucket{}
	var wg sync.WaitGroup
	wg.Add(3)
	go func() {
		defer wg.Done()
		time.Sleep(time.Millisecond)
		b.add(1)
	}()
	go func() {
		defer wg.Done()
		if b.takeWithin(time.Millisecond, fixed) {
			b.add(1)
		}
	}()
	go func() {
		defer wg.Done()
		b.take()
	}()
	wg.Wait()
}

func TestBugTokenBucketTimeout(t *testing.T) { tbktScene(false) }

func TestFixedTokenBucketTimeout(t *testing.T) { tbktScene(true) }
