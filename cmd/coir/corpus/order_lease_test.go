//go:build corpus

package corpus

import (
	"sync"
	"testing"
	"time"
)

// A leader holds a lease that a timer ends. To renew it is to stop the timer and to start a new one. If the timer has
// fired already and its function waits for the lock, stopping it has no effect: the lease is renewed, and the
// function of the old timer ends the new term.
//
// Class: order
// Expect: fail

type leaderLease struct {
	ttl    time.Duration
	expire func(l *leaderLease, term int)
	timers sync.WaitGroup // timers that have not been stopped and whose function has not returned

	mu    sync.Mutex
	held  bool
	term  int
	timer *time.Timer
}

func (l *leaderLease) acquire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = true
	l.startTimer()
}

func (l *leaderLease) startTimer() {
	l.term++
	term := l.term
	l.timers.Add(1)
	l.timer = time.AfterFunc(l.ttl, func() {
		defer l.timers.Done()
		l.expire(l, term)
	})
}

func (l *leaderLease) stopTimer() {
	if l.timer.Stop() {
		l.timers.Done()
	}
}

func (l *leaderLease) renew() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.held {
		return false
	}
	l.stopTimer()
	l.startTimer()
	return true
}

func (l *leaderLease) isHeld() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held
}

func (l *leaderLease) release() {
	l.mu.Lock()
	l.held = false
	l.stopTimer()
	l.mu.Unlock()
	l.timers.Wait()
}

func expireLease(l *leaderLease, term int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = false
}

func expireLeaseFixed(l *leaderLease, term int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.term == term {
		l.held = false
	}
}

func runLeaderLease(t *testing.T, expire func(*leaderLease, int)) {
	const ttl = 10 * time.Millisecond
	l := &leaderLease{ttl: ttl, expire: expire}
	l.acquire()
	time.Sleep(ttl)
	start := time.Now()
	renewed, held := l.renew(), l.isHeld()
	if renewed && !held && time.Since(start) < ttl {
		t.Error("the lease ended before its term")
	}
	l.release()
}

func TestBugLeaderLease(t *testing.T) {
	runLeaderLease(t, expireLease)
}

func TestFixedLeaderLease(t *testing.T) {
	runLeaderLease(t, expireLeaseFixed)
}
