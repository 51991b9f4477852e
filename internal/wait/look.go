package wait

import (
	"sync/atomic"
	"unsafe"
)

// LookAt reads a variable that its owner writes without synchronisation. The owner stored each of the result's two
// words, but perhaps in different stores. So the caller must not use the result until it knows that the variable has
// not changed meanwhile. See sched.Task.Look.
//
//go:norace
func LookAt(p *any) (x any) {
	from, to := (*[2]unsafe.Pointer)(unsafe.Pointer(p)), (*[2]unsafe.Pointer)(unsafe.Pointer(&x))
	to[0], to[1] = atomic.LoadPointer(&from[0]), atomic.LoadPointer(&from[1])
	return x
}
