package board

import "sync/atomic"

// Slots is a table of the cases of a selector, indexed by [Hook].Slot. Its user's lock guards Place and Remove. Get
// needs no lock if Place has returned before the hook was armed. The zero value is empty.
type Slots[T any] struct {
	all  atomic.Pointer[[]*T] // the slice is replaced when it grows
	free []int                // free[:n] are the unused slots
	n    int
}

// Place puts v into an unused slot, and returns the slot's number.
//
//go:norace
func (s *Slots[T]) Place(v *T) int {
	var all []*T
	if old := s.all.Load(); old != nil {
		all = *old
	}
	if s.n == 0 {
		size := max(2*len(all), 8)
		more, free := make([]*T, size), make([]int, size)
		for i, old := range all { //nolint:staticcheck // the race detector would see a copy
			more[i] = old
		}
		for i := len(all); i < size; i++ {
			free[s.n] = i
			s.n++
		}
		all, s.free = more, free
		s.all.Store(&more)
	}
	s.n--
	slot := s.free[s.n]
	all[slot] = v
	return slot
}

// Get returns the value in a slot, or nil if the slot is no longer used.
//
//go:norace
func (s *Slots[T]) Get(slot int) *T { return (*s.all.Load())[slot] }

// Remove empties a slot.
//
//go:norace
func (s *Slots[T]) Remove(slot int) {
	(*s.all.Load())[slot] = nil
	s.free[s.n] = slot
	s.n++
}
