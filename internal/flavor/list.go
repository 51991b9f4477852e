package flavor

import (
	"unsafe"

	"github.com/coir-go/coir/internal/race"
)

// List keeps any number of values in a chain of segments.
//
// A slice would copy all its values whenever it grows or shrinks, so one put could take long. A chain copies nothing,
// and an emptied segment is freed immediately, even in the middle of a burst. The list keeps one emptied segment, for a
// channel that alternates between empty and a few values. The first segment is small, and later segments double in size
// up to largest, so that a channel that holds little uses little memory.
type List[T any] struct {
	// Spec: CH-15 (an unbounded send never waits)
	// Spec: CH-16 (an unbounded channel gives memory back)

	first, last *segment[T]
	spare       *segment[T]
	head, tail  int // the next place to take from in first, and to put into in last
	n           int
}

type segment[T any] struct {
	next *segment[T]
	vals []T
}

const (
	smallest = 8
	largest  = 8 << 10 // bytes, roughly
)

// Put implements Store. A List is never full.
//
//go:norace
func (l *List[T]) Put(v T) {
	if l.last == nil || l.tail == len(l.last.vals) {
		l.grow()
	}
	p := &l.last.vals[l.tail]
	race.Offer(unsafe.Pointer(p)) // a sender never waits for room, so no receive is ordered before it
	*p = v
	l.tail++
	l.n++
}

//go:noinline
//go:norace
func (l *List[T]) grow() {
	s := l.spare
	if s != nil {
		l.spare = nil
	} else {
		var zero T
		n := smallest
		if l.last != nil {
			n = 2 * len(l.last.vals)
		}
		s = &segment[T]{vals: make([]T, max(1, min(n, largest/max(1, int(unsafe.Sizeof(zero))))))}
	}
	if l.last == nil {
		l.first, l.head = s, 0
	} else {
		l.last.next = s
	}
	l.last, l.tail = s, 0
}

// Take implements Store.
//
//go:norace
func (l *List[T]) Take() (v T) {
	p := &l.first.vals[l.head]
	race.Meet(unsafe.Pointer(p))
	var zero T
	v, *p = *p, zero
	l.head++
	l.n--
	if l.head == len(l.first.vals) {
		l.drop()
	} else if l.n == 0 {
		l.head, l.tail = 0, 0 // there is one segment; use it from its start again
	}
	return v
}

// drop removes the first segment, which is empty.
//
//go:noinline
//go:norace
func (l *List[T]) drop() {
	s := l.first
	l.first, l.head = s.next, 0
	if l.first == nil {
		l.last, l.tail = nil, 0
	}
	s.next = nil
	l.spare = s
}
