//go:build corpus

package later

import (
	"context"
	"sync"
	"testing"
)

// A mailbox lets a consumer wait on a condition variable until a message comes or its context is cancelled. The
// cancellation hook broadcasts without holding the lock. If it runs after the consumer has looked at the context but
// before it is registered as a waiter, the broadcast wakes no goroutine and the consumer sleeps for ever.
//
// Class: context
// Expect: deadlock
type ctxMailbox struct {
	mu       sync.Mutex
	cond     *sync.Cond
	msgs     []string
	lockHook bool
	hooks    sync.WaitGroup
}

func newCtxMailbox(lockHook bool) *ctxMailbox {
	m := &ctxMailbox{lockHook: lockHook}
	m.cond = sync.NewCond(&m.mu)
	return m
}

func (m *ctxMailbox) Push(msg string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.msgs = append(m.msgs, msg)
	m.cond.Signal()
}

func (m *ctxMailbox) wakeAll() {
	defer m.hooks.Done()
	if m.lockHook {
		m.mu.Lock()
		defer m.mu.Unlock()
	}
	m.cond.Broadcast()
}

func (m *ctxMailbox) Pop(ctx context.Context) (string, error) {
	m.hooks.Add(1)
	stop := context.AfterFunc(ctx, m.wakeAll)
	defer func() {
		if stop() {
			m.hooks.Done() // the hook will not run
		}
	}()
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.msgs) == 0 {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		m.cond.Wait()
	}
	msg := m.msgs[0]
	m.msgs = m.msgs[1:]
	return msg, nil
}

func runCtxMailbox(t *testing.T, m *ctxMailbox) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		m.Push("resize image 12")
		cancel()
	}()
	got := 0
	for {
		if _, err := m.Pop(ctx); err != nil {
			break
		}
		got++
	}
	wg.Wait()
	m.hooks.Wait()
	if got != 1 {
		t.Errorf("consumed %d messages, want 1", got)
	}
}

func TestBugCtxMailbox(t *testing.T) {
	runCtxMailbox(t, newCtxMailbox(false))
}

func TestFixedCtxMailbox(t *testing.T) {
	runCtxMailbox(t, newCtxMailbox(true))
}
