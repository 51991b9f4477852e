package flavor

import (
	"unsafe"

	"github.com/coir-go/coir/internal/race"
)

// Ring keeps up to as many values as it was made for.
//
// Values are at buf[head], buf[head+1], ... around the end; a place outside of that holds the zero value, so that what has
// been taken can be collected.
type Ring[T any] struct {
	// Spec: CH-06 (a bounded channel holds its capacity)

	buf  []T
	head int
	n    int
}

// NewRing makes a ring with room for capacity values, at least one.
func NewRing[T any](capacity int) *Ring[T] { return &Ring[T]{buf: make([]T, capacity)} }

// Put implements Store.
//
//go:norace
func (r *Ring[T]) Put(v T) int {
	// Spec: CH-07 (a send with room does not wait)
	if r.n == len(r.buf) {
		return 0
	}
	at := r.head + r.n
	if at >= len(r.buf) {
		at -= len(r.buf)
	}
	p := &r.buf[at]
	race.Meet(unsafe.Pointer(p))
	*p = v
	r.n++
	return r.n
}

// Take implements Store.
//
//go:norace
func (r *Ring[T]) Take() (v T, ok bool) {
	// Spec: CH-08 (a receive takes the oldest)
	if r.n == 0 {
		return v, false
	}
	p := &r.buf[r.head]
	race.Meet(unsafe.Pointer(p))
	var zero T
	v, *p = *p, zero
	if r.head++; r.head == len(r.buf) {
		r.head = 0
	}
	r.n--
	return v, true
}

// Passed implements Store: the value's place is used as if it had been there. So receive k is before the return of send k+c,
// whichever way the values went.
//
//go:norace
func (r *Ring[T]) Passed() {
	race.Meet(unsafe.Pointer(&r.buf[r.head]))
	if r.head++; r.head == len(r.buf) {
		r.head = 0
	}
}

// Len implements Store.
//
//go:norace
func (r *Ring[T]) Len() int { return r.n }
