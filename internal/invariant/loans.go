//go:build coirinvariants

package invariant

import "reflect"

// Loans records which values are lent. Its user's lock guards it.
type Loans struct {
	out map[any]int // how many times each value is lent
}

// Lend records that v is lent.
func (l *Loans) Lend(v any) {
	if id, ok := identity(v); ok {
		if l.out == nil {
			l.out = make(map[any]int)
		}
		l.out[id]++
	}
}

// GiveBack records that v is no longer lent. It returns false if v was not lent.
func (l *Loans) GiveBack(v any) bool {
	id, ok := identity(v)
	if !ok {
		return true
	}
	if l.out[id] == 0 {
		return false
	}
	if l.out[id]--; l.out[id] == 0 {
		delete(l.out, id)
	}
	return true
}

// identity returns a key that distinguishes v from other values, if there is one. A struct may change while it is lent,
// and a slice may grow.
func identity(v any) (id any, ok bool) {
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Map:
		return r.Pointer(), true
	case reflect.Invalid, reflect.Struct, reflect.Array, reflect.Slice, reflect.Func:
		return nil, false
	}
	return v, v == v //nolint:gocritic,staticcheck // a NaN is not equal to itself
}
