//go:build !coirinterleave

package xatomic

import (
	"sync"
	"sync/atomic"
	"unsafe"
)

// Instrumented reports whether this build is for exploration.
const Instrumented = false

// The types of the standard library.
type (
	// Bool is atomic.Bool.
	Bool = atomic.Bool
	// Int32 is atomic.Int32.
	Int32 = atomic.Int32
	// Int64 is atomic.Int64.
	Int64 = atomic.Int64
	// Uint32 is atomic.Uint32.
	Uint32 = atomic.Uint32
	// Uint64 is atomic.Uint64.
	Uint64 = atomic.Uint64
	// Pointer is atomic.Pointer.
	Pointer[T any] = atomic.Pointer[T]
	// Mutex is sync.Mutex.
	Mutex = sync.Mutex
	// Cond is sync.Cond.
	Cond = sync.Cond
)

// Preset stores v in x, to which no other thread has a pointer yet. In an exploration it is not a step.
func Preset(x *Uint64, v uint64) { x.Store(v) }

// Go starts f as a thread of an exploration. It returns false if no exploration is running; the caller then starts a
// goroutine.
func Go(func()) bool { return false }

// Yield waits, in an exploration, until another thread has made a step.
func Yield() {}

// Sema is a semaphore with one place: Post fills it, Wait empties it.
type Sema struct{ c chan struct{} }

// NewSema returns an empty Sema.
func NewSema() Sema { return Sema{make(chan struct{}, 1)} }

// Post fills the place, which must be empty.
func (s Sema) Post() { s.c <- struct{}{} }

// Wait waits until the place is full, and empties it.
func (s Sema) Wait() { <-s.c }

// C returns the channel that Wait receives from, for use in a select. An exploration does not see that select.
func (s Sema) C() <-chan struct{} { return s.c }

// Unmade reports whether s was not made by NewSema.
func (s Sema) Unmade() bool { return s.c == nil }

// Gate is shut until Open is called, once. Then it stays open.
type Gate struct{ c chan struct{} }

// NewGate returns a Gate that is shut.
func NewGate() *Gate { return &Gate{make(chan struct{})} }

// Open opens the gate.
func (g *Gate) Open() { close(g.c) }

// Wait waits until the gate is open.
func (g *Gate) Wait() { <-g.c }

// Reads announces a deliberately unsynchronized read of the word at p, which other threads may write.
func Reads(unsafe.Pointer) {}

// Writes announces a write of the word at p, which other threads may read.
func Writes(unsafe.Pointer) {}

// Peek announces that the caller reads something that m guards without locking m, to make a guess.
func Peek(m *Mutex) {}
