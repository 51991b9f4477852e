//go:build !plan9

package netio

import "syscall"

// These are the errors of the system that a simulated connection returns.
const (
	errRefused      = syscall.ECONNREFUSED
	errReset        = syscall.ECONNRESET
	errPipe         = syscall.EPIPE
	errAddrInUse    = syscall.EADDRINUSE
	errNoPort       = syscall.EADDRNOTAVAIL
	errNoFile       = syscall.ENOENT
	errNotConnected = syscall.ENOTCONN
)
