//go:build unix

package poll

import "syscall"

// The points before operations on a descriptor in memory. They read the descriptor's number before they have locked the
// FD, so the race detector must not see the access.

// coirLocks is called before an operation locks the FD for reading or writing, which may wait for another goroutine's
// operation.
//
//go:norace
func coirLocks(fd *FD, read bool) { syscall.CoirBegins(fd.Sysfd, read) }

//go:norace
func coirCloses(fd *FD) { syscall.CoirCloses(fd.Sysfd) }
