// Package hide keeps a pointer out of the sight of the compiler's escape analysis, for a function that calls through an
// interface but lets nobody keep what it was given. The pointer stays a pointer in every frame that it is in, so a stack
// that moves takes it along.
//
// The road not taken is the trick that package strings uses, which needs no assembly:
//
//	x := uintptr(p)
//	return unsafe.Pointer(x ^ 0)
//
// When it is inlined, the compiler may keep x in the caller's frame, where it is a number. A stack that moves leaves
// numbers as they are, and then the pointer that is made of x points into the old stack. A select did so in 3 of 32 runs
// of a program that grows its stacks. With go:noinline it did not in 40 runs, but no document promises that; the assembly
// has no number at any time.
//
// The pure Go form hides nothing: what is passed through it is allocated.
package hide
