//go:build !linux || 386

package testing

// coirInside reports whether only this process can end the waits for descriptors. That is not known on other
// systems, nor on linux/386, which lacks system calls of their own for this.
func coirInside([]coirKernelWait, []int32) bool { return false }
