//go:build coirinterleave

package xatomic

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/coir-go/coir/internal/interleave"
)

// Instrumented reports whether this build is for exploration.
const Instrumented = true

// Bool is atomic.Bool, announced.
type Bool struct {
	o interleave.Object
	v atomic.Bool
}

// Load is atomic.Bool's.
func (x *Bool) Load() bool {
	x.o.Do(interleave.Read)
	return x.v.Load()
}

// Store is atomic.Bool's.
func (x *Bool) Store(v bool) {
	x.o.Do(interleave.Write)
	x.v.Store(v)
}

// Swap is atomic.Bool's.
func (x *Bool) Swap(v bool) bool {
	x.o.Do(interleave.Write)
	return x.v.Swap(v)
}

// CompareAndSwap is atomic.Bool's.
func (x *Bool) CompareAndSwap(from, to bool) bool {
	x.o.Do(interleave.Update)
	return swapped(x.v.CompareAndSwap(from, to))
}

// Preset stores v in x, to which no other thread has a pointer yet. In an exploration it is not a step.
func Preset(x *Uint64, v uint64) { x.v.Store(v) }

func swapped(yes bool) bool {
	if !yes {
		interleave.Missed()
	}
	return yes
}

// number is the set of methods that the integers of sync/atomic have in common.
type number[T any] interface {
	Load() T
	Store(T)
	Add(T) T
	Swap(T) T
	CompareAndSwap(from, to T) bool
}

// counter is a number whose operations are announced. P is the type of sync/atomic.
type counter[T, V any, P interface {
	*V
	number[T]
}] struct {
	o interleave.Object
	v V
}

// Load, like the other methods, is that of sync/atomic.
func (x *counter[T, V, P]) Load() T {
	x.o.Do(interleave.Read)
	return P(&x.v).Load()
}

func (x *counter[T, V, P]) Store(v T) {
	x.o.Do(interleave.Write)
	P(&x.v).Store(v)
}

func (x *counter[T, V, P]) Add(d T) T {
	x.o.Do(interleave.Write)
	return P(&x.v).Add(d)
}

func (x *counter[T, V, P]) Swap(v T) T {
	x.o.Do(interleave.Write)
	return P(&x.v).Swap(v)
}

func (x *counter[T, V, P]) CompareAndSwap(from, to T) bool {
	x.o.Do(interleave.Update)
	return swapped(P(&x.v).CompareAndSwap(from, to))
}

// The numbers of sync/atomic, announced.
type (
	// Int32 is atomic.Int32, announced.
	Int32 = counter[int32, atomic.Int32, *atomic.Int32]
	// Int64 is atomic.Int64, announced.
	Int64 = counter[int64, atomic.Int64, *atomic.Int64]
	// Uint32 is atomic.Uint32, announced.
	Uint32 = counter[uint32, atomic.Uint32, *atomic.Uint32]
	// Uint64 is atomic.Uint64, announced.
	Uint64 = counter[uint64, atomic.Uint64, *atomic.Uint64]
)

// Pointer is atomic.Pointer, announced.
type Pointer[T any] struct {
	o interleave.Object
	v atomic.Pointer[T]
}

// Load is atomic.Pointer's.
func (x *Pointer[T]) Load() *T {
	x.o.Do(interleave.Read)
	return x.v.Load()
}

// Store is atomic.Pointer's.
func (x *Pointer[T]) Store(v *T) {
	x.o.Do(interleave.Write)
	x.v.Store(v)
}

// CompareAndSwap is atomic.Pointer's.
func (x *Pointer[T]) CompareAndSwap(from, to *T) bool {
	x.o.Do(interleave.Update)
	return swapped(x.v.CompareAndSwap(from, to))
}

// Mutex is sync.Mutex, announced.
type Mutex struct {
	o  interleave.Object
	mu sync.Mutex // free whenever an exploration lets a thread lock it
}

// Lock is sync.Mutex's.
func (m *Mutex) Lock() {
	m.o.Do(interleave.Lock)
	m.mu.Lock()
}

// TryLock always succeeds here, if necessary after waiting, because no explored code depends on a failure.
func (m *Mutex) TryLock() bool {
	m.Lock()
	return true
}

// Unlock is sync.Mutex's.
func (m *Mutex) Unlock() {
	m.o.Do(interleave.Unlock)
	m.mu.Unlock()
}

// Cond is sync.Cond, announced.
type Cond struct {
	L       sync.Locker
	o       interleave.Object
	waiters []*interleave.Object
	cond    sync.Cond // outside of explorations
}

// Wait is sync.Cond's.
func (c *Cond) Wait() {
	if !c.o.Do(interleave.Write) {
		c.cond.L = c.L
		c.cond.Wait()
		return
	}
	turn := new(interleave.Object)
	c.waiters = append(c.waiters, turn)
	c.L.Unlock()
	turn.Do(interleave.Wait)
	c.L.Lock()
}

// Signal is sync.Cond's.
func (c *Cond) Signal() {
	if !c.o.Do(interleave.Write) {
		c.cond.Signal()
		return
	}
	if len(c.waiters) > 0 {
		turn := c.waiters[0]
		c.waiters = c.waiters[1:] // before the next step, at which another Signal may come
		turn.Do(interleave.Post)
	}
}

// Go starts f as a thread of an exploration. It returns false if no exploration is running; the caller then starts a
// goroutine.
func Go(f func()) bool { return interleave.Go("worker", f) }

// Yield waits, in an exploration, until another thread has made a step.
func Yield() { interleave.Yield() }

// Sema is a semaphore with one place: Post fills it, Wait empties it.
type Sema struct{ s *sema }

type sema struct {
	o interleave.Object
	c chan struct{}
}

// NewSema returns an empty Sema.
func NewSema() Sema { return Sema{&sema{c: make(chan struct{}, 1)}} }

// Post fills the place, which must be empty.
func (s Sema) Post() {
	if s.s.o.Do(interleave.Post) {
		select {
		case s.s.c <- struct{}{}:
		default:
			panic("xatomic: posted twice")
		}
		return
	}
	s.s.c <- struct{}{}
}

// Wait waits until the place is full, and empties it.
func (s Sema) Wait() {
	s.s.o.Do(interleave.Wait)
	<-s.s.c
}

// C returns the channel that Wait receives from, for use in a select. An exploration does not see that select.
func (s Sema) C() <-chan struct{} { return s.s.c }

// Unmade reports whether s was not made by NewSema.
func (s Sema) Unmade() bool { return s.s == nil }

// Gate is shut until Open is called, once. Then it stays open.
type Gate struct {
	o interleave.Object
	c chan struct{}
}

// NewGate returns a Gate that is shut.
func NewGate() *Gate { return &Gate{c: make(chan struct{})} }

// Open opens the gate.
func (g *Gate) Open() {
	g.o.Do(interleave.Post)
	close(g.c)
}

// Wait waits until the gate is open.
func (g *Gate) Wait() {
	g.o.Through()
	<-g.c
}

// Reads announces a deliberately unsynchronized read of the word at p, which other threads may write.
func Reads(p unsafe.Pointer) { interleave.Word(p, interleave.Read) }

// Writes announces a write of the word at p, which other threads may read.
func Writes(p unsafe.Pointer) { interleave.Word(p, interleave.Write) }

// Peek announces that the caller reads something that m guards without locking m, to make a guess.
func Peek(m *Mutex) { m.o.Do(interleave.Read) }
