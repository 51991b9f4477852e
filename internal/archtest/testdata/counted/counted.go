// Package counted has what the library uses of sync and sync/atomic, and counts the writes: each atomic write and each
// lock taken, by line. TestSharedWords builds the library with it instead of those packages.
//
// What is not counted: loads, unlocks, and the channels and pools of Go.
package counted

import (
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"
)

// A Write is one kind of write at one line.
type Write struct {
	File   string
	Line   int
	Method string // Lock, Store, Add, Swap, CompareAndSwap
}

var (
	counting atomic.Bool
	below    atomic.Bool

	mu     sync.Mutex
	writes map[Write]int
)

// During counts the writes of all goroutines while f runs.
func During(f func()) map[Write]int { return count(false, f) }

// Under counts only the writes of the goroutine that calls f.
func Under(f func()) map[Write]int { return count(true, func() { here(f) }) }

//go:noinline
func here(f func()) { f() }

func count(only bool, f func()) map[Write]int {
	mu.Lock()
	writes = make(map[Write]int)
	mu.Unlock()
	below.Store(only)
	counting.Store(true)
	f()
	counting.Store(false)
	mu.Lock()
	defer mu.Unlock()
	return writes
}

func note(method string) {
	if !counting.Load() {
		return
	}
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	first, more := frames.Next()
	inside := !below.Load()
	for f := first; ; f, more = frames.Next() {
		inside = inside || strings.HasSuffix(f.Function, "counted.here")
		if !more {
			break
		}
	}
	if !inside {
		return
	}
	mu.Lock()
	writes[Write{first.File, first.Line, method}]++
	mu.Unlock()
}

// What is not counted.
type (
	Cond   = sync.Cond
	Locker = sync.Locker
	Once   = sync.Once
	Pool   = sync.Pool
	Value  = atomic.Value
)

// OnceValue is that of sync.
func OnceValue[T any](f func() T) func() T { return sync.OnceValue(f) }

// Mutex is sync.Mutex, counted.
// Loads write nothing.
func LoadUint32(p *uint32) uint32                  { return atomic.LoadUint32(p) }
func LoadUint64(p *uint64) uint64                  { return atomic.LoadUint64(p) }
func LoadInt64(p *int64) int64                     { return atomic.LoadInt64(p) }
func LoadUintptr(p *uintptr) uintptr               { return atomic.LoadUintptr(p) }
func LoadPointer(p *unsafe.Pointer) unsafe.Pointer { return atomic.LoadPointer(p) }

type Mutex struct{ v sync.Mutex }

func (m *Mutex) Lock() {
	note("Lock")
	m.v.Lock()
}

func (m *Mutex) TryLock() bool {
	note("TryLock")
	return m.v.TryLock()
}

func (m *Mutex) Unlock() { m.v.Unlock() }

// Bool is atomic.Bool, counted.
type Bool struct{ v atomic.Bool }

func (x *Bool) Load() bool { return x.v.Load() }

func (x *Bool) Store(v bool) {
	note("Store")
	x.v.Store(v)
}

func (x *Bool) Swap(v bool) bool {
	note("Swap")
	return x.v.Swap(v)
}

func (x *Bool) CompareAndSwap(from, to bool) bool {
	note("CompareAndSwap")
	return x.v.CompareAndSwap(from, to)
}

// Pointer is atomic.Pointer, counted.
type Pointer[T any] struct{ v atomic.Pointer[T] }

func (x *Pointer[T]) Load() *T { return x.v.Load() }

func (x *Pointer[T]) Store(v *T) {
	note("Store")
	x.v.Store(v)
}

func (x *Pointer[T]) Swap(v *T) *T {
	note("Swap")
	return x.v.Swap(v)
}

func (x *Pointer[T]) CompareAndSwap(from, to *T) bool {
	note("CompareAndSwap")
	return x.v.CompareAndSwap(from, to)
}

type number[T any] interface {
	Load() T
	Store(T)
	Add(T) T
	Swap(T) T
	CompareAndSwap(from, to T) bool
	And(T) T
	Or(T) T
}

type counter[T, V any, P interface {
	*V
	number[T]
}] struct{ v V }

func (x *counter[T, V, P]) Load() T { return P(&x.v).Load() }

func (x *counter[T, V, P]) Store(v T) {
	note("Store")
	P(&x.v).Store(v)
}

func (x *counter[T, V, P]) Add(d T) T {
	note("Add")
	return P(&x.v).Add(d)
}

func (x *counter[T, V, P]) Swap(v T) T {
	note("Swap")
	return P(&x.v).Swap(v)
}

func (x *counter[T, V, P]) CompareAndSwap(from, to T) bool {
	note("CompareAndSwap")
	return P(&x.v).CompareAndSwap(from, to)
}

func (x *counter[T, V, P]) And(v T) T {
	note("And")
	return P(&x.v).And(v)
}

func (x *counter[T, V, P]) Or(v T) T {
	note("Or")
	return P(&x.v).Or(v)
}

// The numbers of sync/atomic, counted.
type (
	Int32   = counter[int32, atomic.Int32, *atomic.Int32]
	Int64   = counter[int64, atomic.Int64, *atomic.Int64]
	Uint32  = counter[uint32, atomic.Uint32, *atomic.Uint32]
	Uint64  = counter[uint64, atomic.Uint64, *atomic.Uint64]
	Uintptr = counter[uintptr, atomic.Uintptr, *atomic.Uintptr]
)
