//go:build unix && !(linux && (amd64 || arm64))

package syscall

// coirMemory says whether a schedule has sockets in memory.
const coirMemory = false

const (
	coirNonblock, coirCloexec, coirReusePort = 0, 0, 0
	coirGetsockopt, coirSetsockopt           = 0, 0
)

var coirTraps [0]uintptr
