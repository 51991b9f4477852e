//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package buf

import "syscall"

// canMap reports whether mapMemory works on this system.
const canMap = true

// mapMemory returns n bytes that are not on the Go heap. The system provides each page when it is first used.
func mapMemory(n int) ([]byte, error) {
	return syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
}

// unmapMemory frees memory that mapMemory returned.
func unmapMemory(mem []byte) error { return syscall.Munmap(mem) }
