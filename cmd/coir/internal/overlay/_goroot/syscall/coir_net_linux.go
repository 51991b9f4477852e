//go:build amd64 || arm64

package syscall

import "internal/goarch"

// coirMemory says whether a schedule has sockets in memory.
const coirMemory = true

const (
	coirNonblock  = SOCK_NONBLOCK
	coirCloexec   = SOCK_CLOEXEC
	coirReusePort = 15 // SO_REUSEPORT

	coirGetsockopt, coirSetsockopt = SYS_GETSOCKOPT, SYS_SETSOCKOPT
	coirSendmmsg                   = 307*goarch.IsAmd64 + 269*goarch.IsArm64
)

// coirTraps are system calls on a socket. Those that package syscall makes do not come this far if it is in memory.
var coirTraps = [...]uintptr{
	SYS_READ, SYS_WRITE, SYS_READV, SYS_WRITEV, SYS_RECVFROM, SYS_SENDTO, SYS_RECVMSG, SYS_SENDMSG, SYS_RECVMMSG,
	coirSendmmsg, SYS_IOCTL, SYS_FCNTL, SYS_DUP, SYS_DUP3, SYS_GETSOCKNAME, SYS_GETPEERNAME, SYS_SHUTDOWN,
}
