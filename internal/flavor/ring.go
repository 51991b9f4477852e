package flavor

import (
	"unsafe"

	"github.com/coir-go/coir/internal/race"
)

// Ring keeps up to a fixed number of values.
//
// The values are at buf[head], buf[head+1], ... up to the one before buf[tail], wrapping around. The other places hold
// the zero value, so that taken values can be garbage collected.
type Ring[T any] struct {
	// Spec: CH-06 (a bounded channel holds its capacity)

	buf        []T
	head, tail int // the next place to take from, and to put into
}

// Init makes a ring with room for capacity values.
//
//go:norace
func (r *Ring[T]) Init(capacity int) {
	if capacity > 0 {
		r.buf = make([]T, capacity)
	}
}

// Put implements Store.
//
//go:norace
func (r *Ring[T]) Put(v T) {
	// Spec: CH-07 (a send with room does not wait)
	p := &r.buf[r.tail]
	race.Meet(unsafe.Pointer(p))
	*p = v
	if r.tail++; r.tail == len(r.buf) {
		r.tail = 0
	}
}

// Take implements Store.
//
//go:norace
func (r *Ring[T]) Take() (v T) {
	// Spec: CH-08 (a receive takes the oldest)
	p := &r.buf[r.head]
	race.Meet(unsafe.Pointer(p))
	var zero T
	v, *p = *p, zero
	if r.head++; r.head == len(r.buf) {
		r.head = 0
	}
	return v
}

// Passed tells the ring, in race builds, that a value passed directly from a sender to a receiver. The ring marks a
// place as if the value had been in it, so that receive k is ordered before the return of send k+c, whichever way the
// values took.
//
//go:norace
func (r *Ring[T]) Passed() {
	race.Meet(unsafe.Pointer(&r.buf[r.head]))
	if r.head++; r.head == len(r.buf) {
		r.head = 0
	}
	r.tail = r.head
}

// Holds reports whether the ring may hold exactly n values. It is for checks.
//
//go:norace
func (r *Ring[T]) Holds(n int) bool {
	return len(r.buf) == 0 && n == 0 || n <= len(r.buf) && (r.head+n)%len(r.buf) == r.tail
}
