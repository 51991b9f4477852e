//go:build !386

package testing

import (
	"internal/coir"
	"os"
	"syscall"
	"time"
	"unsafe"
)

// coirInside reports whether only this process can end the waits for descriptors. That is so if the other end of each
// descriptor is also in this process, and no data is on the way between the two ends. coirInside does not allocate. It
// uses open as a buffer for the open descriptors.
//
// A listener's wait counts as one that only this process can end, unless a connection leads out of the process. In that
// case another process may know the listener's address. coirInside must be called only if the process has not started
// other processes, which could have copies of its descriptors.
func coirInside(waits []coir.KernelWait, open []int32) bool {
	n := 0
	for fd, closed := int32(0), 0; closed < 512; fd++ {
		if _, ok := coirFlags(uintptr(fd)); !ok {
			closed++
			continue
		}
		if n == len(open) {
			return false
		}
		closed, open[n] = 0, fd
		n++
	}
	open = open[:n]
	listens := false
	for _, w := range waits {
		listener, ok := coirInsideOne(uintptr(w.FD), w.Write, open)
		if !ok {
			return false
		}
		listens = listens || listener
	}
	return !listens || !coirLeadsOut(open)
}

func coirInsideOne(fd uintptr, write bool, open []int32) (listener, ok bool) {
	const in, out = 1, 4 // POLLIN, POLLOUT
	events := int16(in)
	if write {
		events = out
	}
	if now, ok := coirReady(fd, events); !ok || now != 0 {
		return false, false // the wait is about to end
	}
	sort, ok := coirOption(fd, syscall.SO_TYPE)
	if !ok {
		return false, coirPipeInside(fd, write, open)
	}
	if sort != syscall.SOCK_STREAM {
		return false, false
	}
	if listens, ok := coirOption(fd, syscall.SO_ACCEPTCONN); !ok || listens != 0 {
		return ok, ok
	}
	if domain, _ := coirOption(fd, syscall.SO_DOMAIN); domain == syscall.AF_UNIX {
		return false, coirPeerIsHere(fd)
	}
	peer, ok := coirPeer(fd, open)
	if !ok {
		return false, false
	}
	const unread, unsent = 0x541B, 0x5411 // SIOCINQ, SIOCOUTQ
	what := uintptr(unsent)
	if write {
		what = unread
	}
	var n int32
	_, _, errno := syscall.RawSyscall(syscall.SYS_IOCTL, peer, what, uintptr(unsafe.Pointer(&n)))
	return false, errno == 0 && (n > 0) == write
}

// coirLeadsOut reports whether an open connection has its other end outside of this process.
func coirLeadsOut(open []int32) bool {
	for _, fd := range open {
		fd := uintptr(fd)
		if sort, ok := coirOption(fd, syscall.SO_TYPE); !ok || sort != syscall.SOCK_STREAM {
			continue
		}
		if listens, ok := coirOption(fd, syscall.SO_ACCEPTCONN); !ok || listens != 0 {
			continue
		}
		const hungUp = 0x2000 // POLLRDHUP
		if now, ok := coirReady(fd, hungUp); !ok || now != 0 {
			continue // the other end is closed
		}
		if domain, _ := coirOption(fd, syscall.SO_DOMAIN); domain == syscall.AF_UNIX {
			if !coirPeerIsHere(fd) {
				return true
			}
		} else if _, ok := coirPeer(fd, open); !ok {
			return true
		}
	}
	return false
}

// coirReady returns which of the events a descriptor has now. It reports false if the system call failed.
func coirReady(fd uintptr, events int16) (now int16, ok bool) {
	poll := struct {
		fd              int32
		events, revents int16
	}{fd: int32(fd), events: events}
	var zero syscall.Timespec
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&poll)), 1,
		uintptr(unsafe.Pointer(&zero)), 0, 0, 0)
	return poll.revents, errno == 0
}

// coirPeerIsHere reports whether the other end of a unix socket was made by this process.
func coirPeerIsHere(fd uintptr) bool {
	var peer syscall.Ucred
	size := uint32(unsafe.Sizeof(peer))
	_, _, errno := syscall.RawSyscall6(syscall.SYS_GETSOCKOPT, fd, syscall.SOL_SOCKET, syscall.SO_PEERCRED,
		uintptr(unsafe.Pointer(&peer)), uintptr(unsafe.Pointer(&size)), 0)
	return errno == 0 && int(peer.Pid) == os.Getpid()
}

// coirPeer returns the descriptor of the other end of a TCP connection, if it is in open.
func coirPeer(fd uintptr, open []int32) (uintptr, bool) {
	mine, ok1 := coirAddress(fd, syscall.SYS_GETSOCKNAME)
	other, ok2 := coirAddress(fd, syscall.SYS_GETPEERNAME)
	if !ok1 || !ok2 {
		return 0, false
	}
	for _, peer := range open {
		if a, ok := coirAddress(uintptr(peer), syscall.SYS_GETSOCKNAME); !ok || a != other {
			continue
		}
		if a, ok := coirAddress(uintptr(peer), syscall.SYS_GETPEERNAME); ok && a == mine {
			return uintptr(peer), true
		}
	}
	return 0, false
}

// coirPipeInside reports whether both ends of a pipe are in this process.
func coirPipeInside(fd uintptr, write bool, open []int32) bool {
	const pipes = 0x50495045 // PIPEFS_MAGIC
	var files syscall.Statfs_t
	_, _, errno := syscall.RawSyscall(syscall.SYS_FSTATFS, fd, uintptr(unsafe.Pointer(&files)), 0)
	if errno != 0 || files.Type != pipes {
		return false
	}
	var mine, other syscall.Stat_t
	if _, _, errno := syscall.RawSyscall(syscall.SYS_FSTAT, fd, uintptr(unsafe.Pointer(&mine)), 0); errno != 0 {
		return false
	}
	need := uintptr(syscall.O_WRONLY)
	if write {
		need = syscall.O_RDONLY
	}
	for _, peer := range open {
		flags, ok := coirFlags(uintptr(peer))
		_, _, errno := syscall.RawSyscall(syscall.SYS_FSTAT, uintptr(peer), uintptr(unsafe.Pointer(&other)), 0)
		if ok && errno == 0 && mine.Dev == other.Dev && mine.Ino == other.Ino && flags&syscall.O_ACCMODE == need {
			return true
		}
	}
	return false
}

// coirFlags returns the flags of a descriptor, and whether it is open.
func coirFlags(fd uintptr) (uintptr, bool) {
	flags, _, errno := syscall.RawSyscall(syscall.SYS_FCNTL, fd, syscall.F_GETFL, 0)
	return flags, errno == 0
}

// coirOption returns an option of a socket.
func coirOption(fd uintptr, name uintptr) (int32, bool) {
	var value int32
	size := uint32(unsafe.Sizeof(value))
	_, _, errno := syscall.RawSyscall6(syscall.SYS_GETSOCKOPT, fd, syscall.SOL_SOCKET, name,
		uintptr(unsafe.Pointer(&value)), uintptr(unsafe.Pointer(&size)), 0)
	return value, errno == 0
}

// coirAddr is a TCP address. IPv4 addresses are mapped to IPv6.
type coirAddr struct {
	ip   [16]byte
	port [2]byte
}

// coirAddress returns the local or the remote address of a connection, depending on the system call.
func coirAddress(fd uintptr, call uintptr) (a coirAddr, ok bool) {
	var b [128]byte
	size := uint32(len(b))
	_, _, errno := syscall.RawSyscall(call, fd, uintptr(unsafe.Pointer(&b)), uintptr(unsafe.Pointer(&size)))
	if errno != 0 {
		return a, false
	}
	copy(a.port[:], b[2:4])
	switch *(*uint16)(unsafe.Pointer(&b)) {
	case syscall.AF_INET:
		a.ip[10], a.ip[11] = 0xff, 0xff
		copy(a.ip[12:], b[4:8])
	case syscall.AF_INET6:
		copy(a.ip[:], b[8:24])
	default:
		return a, false
	}
	return a, true
}

// coirUsed returns the processor time used by the process.
func coirUsed() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
