package sim

// idTable numbers keys in the order in which they are first looked up. It is a hash table that can be cleared in one
// step: a slot is valid only if it has the table's generation.
type idTable struct {
	slots []idSlot
	n     int32
	gen   uint32
}

type idSlot struct {
	key uint64
	gen uint32
	i   int32
}

//go:norace
func (t *idTable) init() { t.slots, t.gen = make([]idSlot, 256), 1 }

//go:norace
func (t *idTable) clear() { t.gen++; t.n = 0 }

// find returns the number of key, and whether key is new.
//
//go:norace
func (t *idTable) find(key uint64) (i int32, fresh bool) {
	if int(t.n)*2 >= len(t.slots) {
		t.grow()
	}
	s := t.slot(key)
	if s.gen == t.gen {
		return s.i, false
	}
	*s = idSlot{key, t.gen, t.n}
	t.n++
	return s.i, true
}

//go:norace
func (t *idTable) slot(key uint64) *idSlot {
	mask := uint64(len(t.slots) - 1)
	for at := key * 0x9E3779B97F4A7C15 >> 32; ; at++ {
		s := &t.slots[at&mask]
		if s.gen != t.gen || s.key == key {
			return s
		}
	}
}

//go:norace
func (t *idTable) grow() {
	old := t.slots
	t.slots = make([]idSlot, 2*len(old))
	for i := range old {
		if old[i].gen == t.gen {
			*t.slot(old[i].key) = old[i]
		}
	}
}

// list is a slice to append to. It does not use append, which the race detector sees even in hidden code.
type list[T any] struct {
	all []T // the elements are all[:n]
	n   int
}

//go:norace
func (l *list[T]) add(x T) {
	if l.n == len(l.all) {
		l.all = doubled(l.all)
	}
	l.all[l.n] = x
	l.n++
}

// clone returns a copy of the elements.
//
//go:norace
func (l *list[T]) clone() []T {
	all := make([]T, l.n)
	for i := range all {
		all[i] = l.all[i]
	}
	return all
}

// doubled returns s with twice the length. It does not use copy, which the race detector sees even in hidden code.
//
//go:norace
func doubled[T any](s []T) []T {
	d := make([]T, max(64, 2*len(s)))
	for i := range s { //nolint:staticcheck // not copy: see above
		d[i] = s[i]
	}
	return d
}
