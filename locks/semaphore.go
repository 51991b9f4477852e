package locks

import (
	"context"
	"fmt"

	"github.com/coir-go/coir"
)

// Semaphore has a number of permits that fibers and goroutines acquire and release, one or more at a time. Waiters are
// served in order: a waiter that needs many permits is not overtaken by others that need fewer. Permits do not belong
// to a fiber: one may acquire them and another release them.
type Semaphore struct {
	q    coir.Queue
	free permits
	size int
}

var acquireVerb = &coir.Verb{Name: "acquire", Waits: "to acquire", Ends: "release", Of: "semaphore"}

// NewSemaphore returns a semaphore with size permits, all free. [coir.WithName] gives it a name, which reports show.
func NewSemaphore(size int, opts ...coir.NameOption) *Semaphore {
	if size < 0 {
		panic(fmt.Sprintf("locks: NewSemaphore(%d): the size must be 0 or more", size))
	}
	s := &Semaphore{size: size}
	s.q.Init(opts...)
	return s
}

// Acquire takes n permits. It waits until they are free and earlier waiters have been served. It returns ctx's error if
// ctx has ended, or ends first. It returns an error immediately if the size of the semaphore is less than n. If it
// returns an error, it has taken none. It panics if n is less than 1.
func (s *Semaphore) Acquire(ctx context.Context, n int) error {
	if n < 1 || n > s.size {
		s.check(n)
		return fmt.Errorf("locks: Acquire(%d) of %s, which has %d permits", n, named("a Semaphore", &s.q), s.size)
	}
	if _, ok := s.q.FastIn(ctx); ok && s.free.takeFast(n, s.size) {
		return nil
	}
	return s.q.Take(ctx, (*semaphore)(s), n)
}

// TryAcquire takes n permits if they are free and there are no waiters, and reports whether it did. It panics if n is
// less than 1.
func (s *Semaphore) TryAcquire(n int) bool {
	s.check(n)
	return s.q.Fast() && s.free.takeFast(n, s.size) || s.q.TryTake((*semaphore)(s), n)
}

// Release returns n permits. It panics if fewer than n are taken, or n is less than 1.
func (s *Semaphore) Release(n int) {
	if s.q.Fast() && n > 0 && s.free.putFast(n) {
		return
	}
	if s.check(n); !s.q.Put((*semaphore)(s), n) {
		panic(fmt.Sprintf("locks: Release(%d) of %s, of which fewer permits are taken", n, named("a Semaphore", &s.q)))
	}
}

// AcquireCase returns a case that takes n permits. If the size of the semaphore is less than n, the case never happens.
// It panics if n is less than 1.
func (s *Semaphore) AcquireCase(n int) coir.Case {
	if s.check(n); n > s.size {
		return coir.Case{}
	}
	return s.q.TakeCase((*semaphore)(s), n)
}

// Cap returns the number of permits, taken or not.
func (s *Semaphore) Cap() int { return s.size }

// String returns a short description of s.
func (s *Semaphore) String() string {
	return fmt.Sprintf("locks.Semaphore(%v, %d of %d taken)", &s.q, s.free.taken(), s.size)
}

func (s *Semaphore) check(n int) {
	if n < 1 {
		panic(fmt.Sprintf("locks: %d permits of %s; must be 1 or more", n, named("a Semaphore", &s.q)))
	}
}

// semaphore is a Semaphore as a coir.Resource.
type semaphore Semaphore

//go:norace
func (s *semaphore) Take(n int) bool { return s.free.take(n, s.size) }

//go:norace
func (s *semaphore) Put(n int, waiting bool) bool { return s.free.put(n, waiting) }

//go:norace
func (s *semaphore) Verb(int) *coir.Verb { return acquireVerb }
