//go:build unix && !(linux && (amd64 || arm64))

package syscall

// coirMemory reports whether sockets may be in memory on this system.
const coirMemory = false

const (
	coirNonblock, coirCloexec, coirReusePort            = 0, 0, 0
	coirGetsockopt, coirSetsockopt, coirPoll, coirPpoll = ^uintptr(0), ^uintptr(1), ^uintptr(2), ^uintptr(3)
	coirSocketCall, coirGeteuid, coirGetegid            = ^uintptr(0), ^uintptr(0), ^uintptr(0)
)

var (
	coirKept [0]struct {
		level, opt int32
		own        bool
	}
	coirTraps [0]struct {
		trap uintptr
		fds  uint8
	}
)
