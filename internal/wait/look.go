package wait

import (
	"sync/atomic"
	"unsafe"
)

// LookAt reads a variable that its owner writes without synchronisation. Each of the result's two words was stored by
// the owner, but the words may belong to different values. So the result must not be used until the caller knows that
// the variable has not changed meanwhile. See sched.Task.Look.
//
//go:norace
func LookAt(p *any) (x any) {
	from, to := (*[2]unsafe.Pointer)(unsafe.Pointer(p)), (*[2]unsafe.Pointer)(unsafe.Pointer(&x))
	to[0], to[1] = atomic.LoadPointer(&from[0]), atomic.LoadPointer(&from[1])
	return x
}
