//go:build coirinvariants

package invariant

import (
	"fmt"
	"sync/atomic"
)

// Enabled reports whether checks are compiled in.
const Enabled = true

// Check panics with the formatted message if ok is false.
func Check(ok bool, format string, args ...any) {
	// Spec: PK-46 (checked builds panic at an illegal transition)
	if !ok {
		panic("coir: broken invariant: " + fmt.Sprintf(format, args...))
	}
}

// Flag is a bool that only checks use.
type Flag struct{ v atomic.Bool }

// Swap sets the flag and returns its old value.
func (f *Flag) Swap(v bool) bool { return f.v.Swap(v) }
