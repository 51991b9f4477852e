// Package hide hides a pointer from the compiler's escape analysis, for a function that calls through an interface
// whose methods do not keep the pointer. The pointer stays a pointer in every frame, so a stack that moves adjusts it.
//
// Rejected: the trick that package strings uses, which needs no assembly:
//
//	x := uintptr(p)
//	return unsafe.Pointer(x ^ 0)
//
// When it is inlined, the compiler may keep x in the caller's frame as a number. A stack that moves does not adjust
// numbers, and the pointer made from x then points into the old stack. This happened to a select in 3 of 32 runs of a
// program that grows its stacks. With go:noinline it did not happen in 40 runs, but no document promises that; the
// assembly never has a number.
//
// The pure Go form hides nothing: what the pointer points to is allocated.
package hide
