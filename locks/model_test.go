package locks_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/locks"
)

// lock is any kind of lock seen as permits: operations take and return some of size permits.
type lock struct {
	size     int
	amounts  []int // the numbers of permits that operations may take
	take     func(ctx context.Context, n int) error
	try      func(n int) bool
	put      func(n int)
	takeCase func(n int) coir.Case
	describe func() string
}

type kind struct {
	name string
	make func() lock
}

// all is the number of permits of a writer in the model of an RWMutex. There are always fewer readers.
const all = 1000

// kinds returns the kinds of locks that can be seen as permits.
func kinds() []kind {
	return []kind{
		{"Mutex", func() lock {
			m := locks.NewMutex(coir.WithName("it"))
			return lock{
				1, []int{1},
				func(ctx context.Context, _ int) error { return m.Lock(ctx) },
				func(int) bool { return m.TryLock() },
				func(int) { m.Unlock() },
				func(int) coir.Case { return m.LockCase() },
				m.String,
			}
		}},
		{"RWMutex", func() lock {
			m := locks.NewRWMutex(coir.WithName("it"))
			return lock{
				all, []int{1, 1, all},
				func(ctx context.Context, n int) error {
					if n == all {
						return m.Lock(ctx)
					}
					return m.RLock(ctx)
				},
				func(n int) bool {
					if n == all {
						return m.TryLock()
					}
					return m.TryRLock()
				},
				func(n int) {
					if n == all {
						m.Unlock()
					} else {
						m.RUnlock()
					}
				},
				func(n int) coir.Case {
					if n == all {
						return m.LockCase()
					}
					return m.RLockCase()
				},
				m.String,
			}
		}},
		{"Semaphore", func() lock {
			s := locks.NewSemaphore(3, coir.WithName("it"))
			return lock{3, []int{1, 1, 2, 3}, s.Acquire, s.TryAcquire, s.Release, s.AcquireCase, s.String}
		}},
	}
}

// model is a lock as a number of permits and an ordered list of waiters.
type model struct {
	left    int
	waiting []*client
}

func (m *model) try(n int) bool {
	if len(m.waiting) > 0 || m.left < n {
		return false
	}
	m.left -= n
	return true
}

func (m *model) take(c *client) {
	if c.granted = m.try(c.n); !c.granted {
		m.waiting = append(m.waiting, c)
	}
}

func (m *model) serve() {
	for len(m.waiting) > 0 && m.waiting[0].n <= m.left {
		c := m.waiting[0]
		m.waiting, m.left, c.granted = m.waiting[1:], m.left-c.n, true
	}
}

func (m *model) leave(c *client) {
	at := slices.Index(m.waiting, c)
	m.waiting = slices.Delete(m.waiting, at, at+1)
	c.left = true
	m.serve()
}

// client is a fiber or goroutine that takes n permits.
type client struct {
	n        int
	deadline time.Time // zero if there is none
	cancel   context.CancelFunc

	granted, left bool       // in the model
	result        chan error // the result of the real lock
}

// check compares the result of c, if its wait has ended, with the model. Nothing runs meanwhile.
func (c *client) check() error {
	select {
	case err := <-c.result:
		switch {
		case err == nil && !c.granted:
			return fmt.Errorf("took %d: in the model it did not", c.n)
		case err != nil && !c.left:
			return fmt.Errorf("ended with %w: in the model it did not leave", err)
		case err != nil && !errors.Is(err, context.Canceled) && (c.deadline.IsZero() || !errors.Is(err, coir.ErrTimeout)):
			return err
		}
	default:
		if c.granted || c.left {
			return fmt.Errorf("waits to take %d: in the model it has (%v), or has left (%v)", c.n, c.granted, c.left)
		}
	}
	return nil
}

// Random histories of a lock: fibers and goroutines lock in every way, give up and time out. Each operation runs until
// nothing can proceed; then the holders and the waiters must be those of the model. So waiters are served in order, no
// waiter that could be served waits, and none that has given up holds a permit.
func TestLocksAgainstAModel(t *testing.T) {
	rounds := 120
	if testing.Short() {
		rounds = 25
	}
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			for seed := range rounds {
				synctest.Test(t, func(t *testing.T) {
					h := newHistory(k.make(), uint64(seed))
					defer h.end()
					for i := range 60 {
						if err := h.step(); err != nil {
							t.Errorf("seed %d, step %d: %v", seed, i, err)
							return
						}
					}
					if err := h.giveBack(); err != nil {
						t.Errorf("seed %d: %v", seed, err)
					}
				})
				if t.Failed() {
					return
				}
			}
		})
	}
}

// history is a random history of a lock and its model.
type history struct {
	lock
	model
	rnd     *rand.Rand
	clients []*client // the waiting clients
	held    []int
	number  time.Duration // number of clients with a deadline: no two deadlines are equal
	never   *coir.Chan[int]
	jobs    *coir.Chan[func(context.Context)] // functions for a fiber to run
	end     func()
}

func newHistory(l lock, seed uint64) *history {
	h := &history{lock: l, model: model{left: l.size}, rnd: rand.New(rand.NewPCG(seed, 1))}
	h.never, h.jobs = coir.NewChan[int](0), coir.NewChan[func(context.Context)](coir.Unbounded)
	ended := make(chan error, 1)
	go func() {
		ended <- coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
			for job, err := range h.jobs.All(ctx) {
				if err != nil {
					return err
				}
				n.Go("client", func(ctx context.Context) error {
					job(ctx)
					return nil
				})
			}
			return nil
		})
	}()
	h.end = func() {
		for _, c := range h.clients {
			c.cancel()
		}
		h.jobs.Close()
		<-ended
	}
	return h
}

// start makes a fiber or a goroutine take what c wants.
func (h *history) start(c *client, how int) {
	c.result = make(chan error, 1)
	ready := make(chan struct{})
	run := func(ctx context.Context) {
		if c.deadline.IsZero() {
			ctx, c.cancel = coir.WithCancel(ctx)
		} else {
			ctx, c.cancel = coir.WithDeadline(ctx, c.deadline)
		}
		close(ready)
		i, err := 1, error(nil)
		switch how {
		case 0:
			i, err = coir.Select(ctx, h.never.RecvCase(nil), h.takeCase(c.n))
		case 1:
			i, err = coir.SelectPriority(ctx, coir.Case{}, h.takeCase(c.n), h.never.RecvCase(nil))
		default:
			err = h.lock.take(ctx, c.n)
		}
		if err == nil && i != 1 {
			err = fmt.Errorf("case %d", i)
		}
		c.result <- err
	}
	if h.rnd.IntN(2) == 0 {
		go run(context.Background())
	} else {
		_ = h.jobs.TrySend(run)
	}
	<-ready
}

// step performs a random action, and compares the lock with the model when nothing can proceed.
func (h *history) step() error {
	n := h.amounts[h.rnd.IntN(len(h.amounts))]
	switch op := h.rnd.IntN(12); {
	case op < 5:
		c := &client{n: n}
		if h.rnd.IntN(3) == 0 {
			h.number++
			c.deadline = time.Now().Add(time.Duration(1+h.rnd.IntN(5))*time.Millisecond + h.number)
		}
		h.start(c, h.rnd.IntN(4))
		h.clients = append(h.clients, c)
		h.model.take(c)
	case op < 7:
		took := false
		if op == 5 {
			took = h.lock.try(n)
		} else {
			i, err := coir.TrySelect(h.never.RecvCase(nil), h.takeCase(n))
			took = i == 1 && err == nil
		}
		if took != h.model.try(n) {
			return fmt.Errorf("a try to take %d, of which %d are left and %d wait, reports %v", n, h.left, len(h.waiting), took)
		}
		if took {
			h.held = append(h.held, n)
		}
	case op < 10 && len(h.held) > 0:
		h.putOne()
	case op == 10 && len(h.waiting) > 0:
		c := h.waiting[h.rnd.IntN(len(h.waiting))]
		c.cancel()
		h.leave(c)
	case op == 11:
		time.Sleep(time.Duration(h.rnd.IntN(4)) * time.Millisecond)
		h.expire(time.Now())
	}
	return h.check()
}

func (h *history) putOne() {
	at := h.rnd.IntN(len(h.held))
	n := h.held[at]
	h.held = slices.Delete(h.held, at, at+1)
	h.put(n)
	h.left += n
	h.serve()
}

// check compares the lock with the model when nothing can proceed.
func (h *history) check() error {
	synctest.Wait()
	for _, c := range h.clients {
		if err := c.check(); err != nil {
			return err
		}
		if c.granted {
			h.held = append(h.held, c.n)
		}
	}
	h.clients = slices.DeleteFunc(h.clients, func(c *client) bool { return c.granted || c.left })
	if want := fmt.Sprintf("%d waiting", len(h.waiting)); !strings.Contains(h.describe(), want) {
		return fmt.Errorf("%s: the model has %s", h.describe(), want)
	}
	return nil
}

// giveBack returns everything that is held, until there are no waiters. Then everything is free.
func (h *history) giveBack() error {
	for len(h.held) > 0 {
		h.putOne()
		if err := h.check(); err != nil {
			return err
		}
	}
	if !h.lock.try(h.size) || len(h.clients) > 0 {
		return fmt.Errorf("not all is free: %s", h.describe())
	}
	return nil
}

// expire removes the waiters whose deadline has passed, in the order of their deadlines.
func (m *model) expire(now time.Time) {
	for {
		var first *client
		for _, c := range m.waiting {
			if !c.deadline.IsZero() && !c.deadline.After(now) && (first == nil || c.deadline.Before(first.deadline)) {
				first = c
			}
		}
		if first == nil {
			return
		}
		m.leave(first)
	}
}
