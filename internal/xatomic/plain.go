//go:build !coirinterleave

package xatomic

import (
	"sync"
	"sync/atomic"
	"unsafe"
)

// Instrumented says whether this build is for exploration.
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

// Go starts f as a thread of an exploration. It reports false if there is none: then the caller starts a goroutine.
func Go(func()) bool { return false }

// Sema has one place: Post fills it, Wait empties it.
type Sema struct{ c chan struct{} }

// NewSema makes one that is empty.
func NewSema() Sema { return Sema{make(chan struct{}, 1)} }

// Post fills the place, which must be empty.
func (s Sema) Post() { s.c <- struct{}{} }

// Wait waits until the place is full, and empties it.
func (s Sema) Wait() { <-s.c }

// Gate is shut until Open, once, and then open for good.
type Gate struct{ c chan struct{} }

// NewGate makes one that is shut.
func NewGate() *Gate { return &Gate{make(chan struct{})} }

// Open lets everybody through.
func (g *Gate) Open() { close(g.c) }

// Wait waits until the gate is open.
func (g *Gate) Wait() { <-g.c }

// Reads marks that the word at p is about to be read without order, on purpose, while others may write it.
func Reads(unsafe.Pointer) {}

// Writes marks that the word at p is about to be written while others may read it.
func Writes(unsafe.Pointer) {}

// Peek marks that what m guards is about to be read without it, as a guess.
func Peek(m *Mutex) {}
