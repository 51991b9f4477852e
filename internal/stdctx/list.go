package stdctx

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/coir-go/coir/internal/race"
)

// List is a list of contexts, oldest first, each with a T that depends on it. Any goroutine may use it. The zero value
// is empty.
type List[T any] struct {
	n     atomic.Int32
	mu    sync.Mutex
	first *Entry[T]
	last  *Entry[T]
}

// Entry is a context in a list.
type Entry[T any] struct {
	Ctx context.Context
	Of  T // the value that depends on the context

	done       <-chan struct{}
	prev, next *Entry[T]
	listed     bool
	depth      int
	stack      [24]uintptr
}

// Stack returns the stack of the call that added the entry.
//
//go:norace
func (e *Entry[T]) Stack() []uintptr { return e.stack[:e.depth] }

// Acquire orders the caller after the call that added the entry. It is called with the caller's synchronisation
// visible.
//
//go:norace
func (e *Entry[T]) Acquire() { race.Acquire(unsafe.Pointer(e)) }

// Add lists a context with its Done channel. It is called with the caller's synchronisation visible.
//
//go:norace
func (l *List[T]) Add(ctx context.Context, done <-chan struct{}, of T) *Entry[T] {
	e := &Entry[T]{Ctx: ctx, Of: of, done: done}
	race.Release(unsafe.Pointer(e)) // package context orders the same, because its cancel reads a context's children
	race.Disable()
	e.depth = runtime.Callers(3, e.stack[:])
	l.mu.Lock()
	e.listed, e.prev = true, l.last
	if l.last == nil {
		l.first = e
	} else {
		l.last.next = e
	}
	l.last = e
	l.n.Add(1)
	l.mu.Unlock()
	race.Enable()
	return e
}

// Remove removes an entry, if it is still in the list.
//
//go:norace
func (l *List[T]) Remove(e *Entry[T]) {
	race.Disable()
	l.mu.Lock()
	l.unlink(e)
	l.mu.Unlock()
	race.Enable()
}

//go:norace
func (l *List[T]) unlink(e *Entry[T]) {
	if !e.listed {
		return
	}
	if e.prev == nil {
		l.first = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		l.last = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.listed, e.prev, e.next = false, nil, nil
	l.n.Add(-1)
}

// TakeDone removes the oldest entry whose context is done, and returns it, or nil if there is none.
//
//go:norace
func (l *List[T]) TakeDone() *Entry[T] {
	if l.n.Load() == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.first
	for e != nil && !IsClosed(e.done) {
		e = e.next
	}
	if e != nil {
		l.unlink(e)
	}
	return e
}

// Await removes and returns an entry whose context is done within patience. If there is none, it returns nil.
//
//go:norace
func (l *List[T]) Await(patience time.Duration) *Entry[T] {
	if l.n.Load() == 0 {
		return nil
	}
	for end := time.Now().Add(patience); ; time.Sleep(patience / 10) {
		if e := l.TakeDone(); e != nil || time.Now().After(end) {
			return e
		}
	}
}
