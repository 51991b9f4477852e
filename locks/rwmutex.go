package locks

import (
	"context"

	"github.com/coir-go/coir"
)

// RWMutex is a lock that can be held by one writer or by any number of readers. Waiters are served in order: a reader
// that comes after a waiting writer waits too, so writers are not starved. A fiber that holds a read lock must not take
// another one: if a writer starts to wait in between, both wait forever.
//
// The zero value is unlocked and has no name. An RWMutex must not be copied after first use.
type RWMutex struct {
	q    coir.Queue
	held permits
}

// A writer takes all permits, a reader one.
const everything = 1 << 30

var (
	writeVerb = &coir.Verb{Name: "lock", Waits: "to lock", Ends: "unlock", Of: "rwmutex", Alone: true}
	readVerb  = &coir.Verb{
		Name: "read-lock", Waits: "to read-lock", Ends: "read-unlock", Of: "rwmutex", Shared: true,
	}
)

// NewRWMutex returns an unlocked RWMutex. [coir.WithName] gives it a name, which reports show.
func NewRWMutex(opts ...coir.NameOption) *RWMutex {
	m := new(RWMutex)
	m.q.Init(opts...)
	return m
}

// Lock locks m for writing. It returns ctx's error if ctx has ended, or ends first; then m is not locked.
func (m *RWMutex) Lock(ctx context.Context) error { return m.take(ctx, everything) }

// RLock locks m for reading. It returns ctx's error if ctx has ended, or ends first; then m is not locked.
func (m *RWMutex) RLock(ctx context.Context) error { return m.take(ctx, 1) }

func (m *RWMutex) take(ctx context.Context, n int) error {
	if by, ok := m.q.FastIn(ctx); ok && m.held.takeFast(n, everything) {
		if n == everything {
			m.q.Held(by)
		}
		return nil
	}
	return m.q.Take(ctx, (*rwmutex)(m), n)
}

// TryLock locks m for writing if it is unlocked, and reports whether it did. Snapshots do not show who holds m after
// TryLock.
func (m *RWMutex) TryLock() bool { return m.try(everything) }

// TryRLock locks m for reading if no writer holds it or waits for it, and reports whether it did.
func (m *RWMutex) TryRLock() bool { return m.try(1) }

func (m *RWMutex) try(n int) bool {
	return m.q.Fast() && m.held.takeFast(n, everything) || m.q.TryTake((*rwmutex)(m), n)
}

// Unlock unlocks m after Lock. It panics if m is not locked for writing.
func (m *RWMutex) Unlock() {
	m.q.Held(0)
	if m.q.Fast() && m.held.putFast(everything) {
		return
	}
	if !m.q.Put((*rwmutex)(m), everything) {
		panic("locks: Unlock of " + named("an RWMutex", &m.q) + ", which is not locked for writing")
	}
}

// RUnlock releases one read lock. It panics if m is not locked for reading.
func (m *RWMutex) RUnlock() {
	if m.q.Fast() && m.held.taken() != everything && m.held.putFast(1) {
		return
	}
	if !m.q.Put((*rwmutex)(m), 1) {
		panic("locks: RUnlock of " + named("an RWMutex", &m.q) + ", which is not locked for reading")
	}
}

// LockCase returns a case that locks m for writing.
func (m *RWMutex) LockCase() coir.Case { return m.q.TakeCase((*rwmutex)(m), everything) }

// RLockCase returns a case that locks m for reading.
func (m *RWMutex) RLockCase() coir.Case { return m.q.TakeCase((*rwmutex)(m), 1) }

// String returns a short description of m.
func (m *RWMutex) String() string { return "locks.RWMutex(" + m.q.String() + ")" }

// rwmutex is an RWMutex as a coir.Resource.
type rwmutex RWMutex

//go:norace
func (m *rwmutex) Take(n int) bool { return m.held.take(n, everything) }

//go:norace
func (m *rwmutex) Put(n int, waiting bool) bool {
	if n == 1 && m.held.taken() == everything {
		return false // a writer holds it
	}
	return m.held.put(n, waiting)
}

//go:norace
func (m *rwmutex) Verb(n int) *coir.Verb {
	if n == 1 {
		return readVerb
	}
	return writeVerb
}
