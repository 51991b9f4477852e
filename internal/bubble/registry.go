package bubble

import (
	"sync"
	"unsafe"
	"weak"

	"github.com/coir-go/coir/internal/race"
)

// Registry has at most one T for each bubble. A bubble does not report its end, so the registry holds its values
// weakly: a value that nothing else refers to may be collected, and made again later. The zero value is empty.
type Registry[T any] struct {
	mu   sync.Mutex
	list *entry[T]
}

type entry[T any] struct {
	home  ID
	value weak.Pointer[T]
	next  *entry[T]
}

// Get returns the value of the given bubble, which is the caller's, and makes it if there is none. In a race build,
// callers are ordered after the call of create, but not after each other.
//
//go:norace
func (r *Registry[T]) Get(home ID, create func() *T) *T {
	race.Disable()
	r.mu.Lock()
	e, v := r.find(home)
	if v == nil {
		e = &entry[T]{home: home, next: r.list}
		v = e.create(create)
		e.value = weak.Make(v)
		r.list = e
	}
	r.mu.Unlock()
	race.Enable()
	race.Acquire(unsafe.Pointer(e))
	return v
}

// find looks up a value, and removes the entries of values that are gone. The caller holds the lock.
//
//go:norace
func (r *Registry[T]) find(home ID) (found *entry[T], value *T) {
	for p := &r.list; *p != nil; {
		e := *p
		v := e.value.Value()
		if v == nil {
			*p = e.next
			continue
		}
		if e.home == home {
			found, value = e, v
		}
		p = &e.next
	}
	return found, value
}

// create makes the value of the entry. It is called in a hidden section.
//
//go:norace
func (e *entry[T]) create(create func() *T) (v *T) {
	race.Alone(func() {
		v = create()
		race.Release(unsafe.Pointer(e))
	})
	return v
}
