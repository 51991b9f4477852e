//go:build unix

package poll

import "syscall"

// The points before operations on a descriptor in memory. They read the descriptor's number before they may, which the
// race detector must not see.

// coirLocks is called before an operation waits for one of the same sort that another goroutine has begun.
//
//go:norace
func coirLocks(fd *FD, read bool) { syscall.CoirBegins(fd.Sysfd, read) }

//go:norace
func coirCloses(fd *FD) { syscall.CoirCloses(fd.Sysfd) }
