package locks

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/coir-go/coir"
)

// Mutex is a mutual exclusion lock. Any fiber or goroutine may unlock it, even one that has not locked it. If the
// holder panics, the mutex stays locked unless Unlock is deferred.
//
// The zero value is unlocked and has no name. A Mutex must not be copied after first use.
type Mutex struct {
	q    coir.Queue
	word atomic.Int32
}

// The values of Mutex.word.
const (
	unlocked = iota
	locked
	lockedWaited // there may be waiters: Unlock must check
)

var lockVerb = &coir.Verb{Name: "lock", Waits: "to lock", Ends: "unlock", Of: "mutex", Alone: true}

// NewMutex returns an unlocked mutex. [coir.WithName] gives it a name, which reports show.
func NewMutex(opts ...coir.NameOption) *Mutex {
	m := new(Mutex)
	m.q.Init(opts...)
	return m
}

// Lock locks m. If m is locked, Lock waits behind earlier waiters. It returns ctx's error if ctx has ended, or ends
// first; then m is not locked.
func (m *Mutex) Lock(ctx context.Context) error {
	if by, ok := m.q.FastIn(ctx); ok && m.word.CompareAndSwap(unlocked, locked) {
		m.q.Held(by)
		return nil
	}
	return m.q.Take(ctx, (*mutex)(m), 1)
}

// TryLock locks m if it is unlocked, and reports whether it did. Snapshots do not show who holds m after TryLock,
// because without a context it takes longer to find out who calls it than to lock m.
func (m *Mutex) TryLock() bool {
	if m.q.Fast() {
		if m.word.CompareAndSwap(unlocked, locked) {
			return true
		}
		if m.word.Load() == locked {
			return false
		}
	}
	return m.q.TryTake((*mutex)(m), 1) // a select that checks whether m is unlocked may hold it for a moment
}

// Unlock unlocks m, and passes it to the first waiter. It panics if m is not locked.
func (m *Mutex) Unlock() {
	m.q.Held(0)
	if m.q.Fast() && m.word.CompareAndSwap(locked, unlocked) {
		return
	}
	if !m.q.Put((*mutex)(m), 1) {
		panic("locks: Unlock of " + named("a Mutex", &m.q) + ", which is not locked")
	}
}

// LockCase returns a case that locks m.
func (m *Mutex) LockCase() coir.Case { return m.q.TakeCase((*mutex)(m), 1) }

// Locker returns m as a [sync.Locker], for code that expects one. Its Lock waits in ctx, but the end of ctx does not
// end the wait.
func (m *Mutex) Locker(ctx context.Context) sync.Locker { return &locker{m, coir.Shield(ctx)} }

// String returns a short description of m.
func (m *Mutex) String() string { return "locks.Mutex(" + m.q.String() + ")" }

type locker struct {
	*Mutex
	ctx context.Context
}

// Lock fails only if package sim ends the wait, after a failure that it reports. The caller must not continue as if it
// held the mutex.
func (l *locker) Lock() {
	if err := l.Mutex.Lock(l.ctx); err != nil {
		panic(err)
	}
}

// mutex is a Mutex as a coir.Resource.
type mutex Mutex

//go:norace
func (m *mutex) Take(int) bool { return m.word.Swap(lockedWaited) == unlocked }

//go:norace
func (m *mutex) Put(int, bool) bool { return m.word.Swap(unlocked) != unlocked }

//go:norace
func (m *mutex) Verb(int) *coir.Verb { return lockVerb }

// named returns a phrase that names the lock in an error: its kind, with an article, and its name if it has one.
func named(kind string, q *coir.Queue) string {
	if q.Name() == "" {
		return kind
	}
	_, kind, _ = strings.Cut(kind, " ")
	return kind + " " + q.Name()
}
