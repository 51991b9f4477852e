//go:build amd64 || arm64

package syscall

import "internal/goarch"

// coirMemory reports whether sockets may be in memory on this system.
const coirMemory = true

const (
	coirNonblock  = SOCK_NONBLOCK
	coirCloexec   = SOCK_CLOEXEC
	coirReusePort = 15 // SO_REUSEPORT

	coirSocketCall                 = SYS_SOCKET
	coirGetsockopt, coirSetsockopt = SYS_GETSOCKOPT, SYS_SETSOCKOPT
	coirGeteuid, coirGetegid       = SYS_GETEUID, SYS_GETEGID
	coirSendmmsg                   = 307*goarch.IsAmd64 + 269*goarch.IsArm64
	coirPpoll                      = 271*goarch.IsAmd64 + 73*goarch.IsArm64
	coirPoll                       = 7*goarch.IsAmd64 + 1<<20*goarch.IsArm64 // arm64 has no such call
)

// coirKept lists the options that have no effect in memory, or whose effect the methods of coirSocket implement. A new
// connection inherits the options of its listener, except those marked own.
var coirKept = [...]struct {
	level, opt int32
	own        bool
}{
	{SOL_SOCKET, SO_REUSEADDR, false},
	{SOL_SOCKET, coirReusePort, false},
	{SOL_SOCKET, SO_LINGER, false},
	{SOL_SOCKET, SO_KEEPALIVE, false},
	{SOL_SOCKET, SO_BROADCAST, true},
	{SOL_SOCKET, SO_DONTROUTE, false},
	{SOL_SOCKET, SO_RCVBUF, false},
	{SOL_SOCKET, SO_SNDBUF, false},
	{IPPROTO_TCP, TCP_NODELAY, false},
	{IPPROTO_TCP, TCP_CORK, false},
	{IPPROTO_TCP, TCP_QUICKACK, false},
	{IPPROTO_TCP, TCP_KEEPIDLE, false},
	{IPPROTO_TCP, TCP_KEEPINTVL, false},
	{IPPROTO_TCP, TCP_KEEPCNT, false},
	{IPPROTO_TCP, TCP_SYNCNT, false},
	{IPPROTO_TCP, TCP_LINGER2, false},
	{IPPROTO_TCP, 18, false}, // TCP_USER_TIMEOUT
	{IPPROTO_TCP, 23, false}, // TCP_FASTOPEN
	{IPPROTO_TCP, 25, false}, // TCP_NOTSENT_LOWAT
	{IPPROTO_IP, IP_TOS, false},
	{IPPROTO_IP, IP_TTL, false},
	{IPPROTO_IPV6, IPV6_V6ONLY, false},
	{IPPROTO_IPV6, IPV6_UNICAST_HOPS, false},
	{IPPROTO_IPV6, IPV6_TCLASS, false},
}

// coirTraps lists system calls on descriptors. The bits of fds say which arguments are descriptors: 1, 2 and 4 stand
// for the first three. If the descriptor is in memory, package syscall handles its own calls before they get here.
// SYS_CLOSE is not listed, because a finalizer, which does not belong to the schedule, may make that call and must have
// no effect.
var coirTraps = [...]struct {
	trap uintptr
	fds  uint8
}{
	{SYS_READ, 1}, {SYS_READV, 1}, {SYS_RECVFROM, 1}, {SYS_RECVMSG, 1}, {SYS_RECVMMSG, 1},
	{SYS_WRITE, 1}, {SYS_WRITEV, 1}, {SYS_SENDTO, 1}, {SYS_SENDMSG, 1}, {coirSendmmsg, 1},
	{SYS_BIND, 1}, {SYS_LISTEN, 1}, {SYS_CONNECT, 1}, {SYS_ACCEPT, 1}, {SYS_ACCEPT4, 1}, {SYS_SHUTDOWN, 1},
	{SYS_GETSOCKNAME, 1}, {SYS_GETPEERNAME, 1}, {SYS_IOCTL, 1}, {SYS_FCNTL, 1}, {SYS_DUP, 1}, {SYS_DUP3, 1 | 2},
	{SYS_FSTAT, 1}, {SYS_FSTATFS, 1}, {SYS_FCHMOD, 1}, {SYS_FCHOWN, 1}, {SYS_LSEEK, 1}, {SYS_PREAD64, 1},
	{SYS_PWRITE64, 1}, {SYS_FSYNC, 1}, {SYS_FDATASYNC, 1}, {SYS_FTRUNCATE, 1}, {SYS_GETDENTS64, 1}, {SYS_FCHDIR, 1},
	{SYS_SENDFILE, 1 | 2}, {SYS_SPLICE, 1 | 4}, {SYS_TEE, 1 | 2}, {SYS_EPOLL_CTL, 4},
}
