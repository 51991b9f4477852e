// Package hide hides a pointer from the compiler's escape analysis. It is for a function that calls through an
// interface whose methods do not keep the pointer. The pointer stays a pointer in every frame, so it is adjusted when
// the stack moves.
//
// Rejected: the trick that package strings uses, which needs no assembly:
//
//	x := uintptr(p)
//	return unsafe.Pointer(x ^ 0)
//
// When this is inlined, the compiler may keep x in the caller's frame as a number. Numbers are not adjusted when a
// stack moves, and the pointer made from x then points into the old stack. This happened to a select in 3 of 32 runs of
// a program that grows its stacks. With go:noinline it did not happen in 40 runs, but no document promises that. The
// assembly never has a number.
//
// The pure Go form hides nothing, so the object that the pointer points to is allocated in the heap.
package hide
