//go:build unix

package poll

import "syscall"

// coirLocks is the point before an operation on a descriptor in memory, and before it waits for one of the same sort that
// another goroutine has begun.
func coirLocks(fd *FD, read bool) { syscall.CoirBegins(fd.Sysfd, read) }
