//go:build linux

package syscall

import (
	"internal/coir"
	"internal/runtime/syscall/linux"
	"unsafe"
)

// This file is for system calls whose arguments are descriptors in memory. Package syscall handles most of its own
// calls earlier; only those on socket options get here. All other calls that get here come from modules such as
// golang.org/x/sys/unix, and are not emulated. Arguments of system calls are addresses in the form of numbers. If the
// stack grew at a point, the numbers would be wrong. So the functions here are go:nosplit and do not allocate until
// they call coirOnKernel, which does not return.
//
// A socket in memory keeps the values of the options in coirKept. To check a value, setOption sets it on a socket of
// the kernel of the same kind. To read a value, askOption makes a new socket of the kernel, sets the same options, and
// reads from that. Other options (control messages, filters) make the test run on the kernel's network.

const (
	coirDomain   = 39 // SO_DOMAIN
	coirProtocol = 38 // SO_PROTOCOL
)

// coirAccepted lists values of options that the kernel has accepted.
var coirAccepted [64]struct {
	twin, kept int
	coirOption
}

// coirTrapped reports whether a system call may have a descriptor in memory among its arguments.
//
//go:nosplit
//go:norace
func coirTrapped(trap, a1, a2, a3 uintptr) bool {
	const n = coirLastFD - coirFirstFD
	return coir.On && (a1-coirFirstFD < n || a2-coirFirstFD < n || a3-coirFirstFD < n ||
		trap == coirPoll || trap == coirPpoll)
}

// coirTrap is called before a system call for which coirTrapped is true. If it returns done, it has handled the call.
//
//go:nosplit
//go:norace
func coirTrap(trap, a1, a2, a3, a4, a5 uintptr) (err Errno, done bool) {
	switch trap {
	case coirGetsockopt, coirSetsockopt:
		s := coirOpened(a1)
		switch {
		case s == nil:
			return 0, false
		case trap == coirGetsockopt:
			return s.getOption(a2, a3, a4, a5), true
		}
		return s.setOption(a2, a3, a4, a5), true
	case coirPoll, coirPpoll:
		for i := uintptr(0); i < a2 && i < coirMaxFiles && a1 != 0; i++ {
			if fd := (*[2]int32)(unsafe.Pointer(a1 + 8*i))[0]; fd >= 0 && coirOpened(uintptr(fd)) != nil {
				coirOnKernel("it makes system calls of its own on a descriptor")
			}
		}
		return 0, false
	}
	for i := range coirTraps {
		if t := &coirTraps[i]; t.trap == trap && (t.fds&1 != 0 && coirOpened(a1) != nil ||
			t.fds&2 != 0 && coirOpened(a2) != nil || t.fds&4 != 0 && coirOpened(a3) != nil) {
			coirOnKernel("it makes system calls of its own on a descriptor")
		}
	}
	return 0, false
}

// coirOpened returns the socket of a descriptor, or nil. The caller need not belong to the schedule.
//
//go:nosplit
//go:norace
func coirOpened(fd uintptr) *coirSocket {
	if i := int(fd) - coirNet.base; coirNet.base != 0 && i >= 0 && i < coirNet.next-coirNet.base {
		return coirNet.files[i]
	}
	return nil
}

// coirKeeps returns the index of an option in coirKept, or -1.
//
//go:nosplit
//go:norace
func coirKeeps(level, opt uintptr) int {
	for i := range coirKept {
		if uintptr(coirKept[i].level) == level && uintptr(coirKept[i].opt) == opt {
			return i
		}
	}
	return -1
}

//go:nosplit
//go:norace
func (s *coirSocket) setOption(level, opt, value, size uintptr) Errno {
	kept := coirKeeps(level, opt)
	if kept < 0 {
		coirOnKernel("it sets an option that sockets in memory do not have")
	}
	o := coirOption{size: int32(min(size, 8))}
	if value != 0 {
		for i := uintptr(0); i < uintptr(o.size); i++ {
			(*[8]byte)(unsafe.Pointer(&o.value))[i] = *(*byte)(unsafe.Pointer(value + i))
		}
	}
	only6 := s.domain == AF_INET6 && level == IPPROTO_IPV6 && opt == IPV6_V6ONLY
	if only6 && (s.bound || s.connected) {
		return EINVAL
	}
	for i := range coirAccepted {
		a := &coirAccepted[i]
		if a.twin == s.twin && a.kept == kept && a.coirOption == o && o.size == int32(size) {
			break
		}
		if a.twin == 0 || i == len(coirAccepted)-1 {
			if err := coirCall(coirSetsockopt, uintptr(s.twin), level, opt, value, size); err != 0 {
				return err
			}
			a.twin, a.kept, a.coirOption = s.twin, kept, o
			break
		}
	}
	s.options[kept] = o
	on := o.value[0] != 0
	switch {
	case level == SOL_SOCKET && opt == SO_REUSEADDR:
		s.reuse = on
	case level == SOL_SOCKET && opt == coirReusePort:
		s.reusePort = on
	case level == SOL_SOCKET && opt == SO_LINGER:
		s.linger0 = on && o.value[1] == 0
	case only6:
		s.only6 = on
	}
	return 0
}

//go:nosplit
//go:norace
func (s *coirSocket) getOption(level, opt, value, size uintptr) Errno {
	if level == SOL_SOCKET {
		answer, n := [3]int32{}, uintptr(4)
		switch opt {
		case SO_ERROR:
			answer[0], s.err = int32(s.err), 0
		case SO_ACCEPTCONN:
			if s.listening {
				answer[0] = 1
			}
		case SO_PEERCRED:
			n = 12
			answer = [3]int32{0, -1, -1}
			if s.domain == AF_UNIX && s.typ != SOCK_DGRAM && (s.connected || s.listening) {
				for i, trap := range [...]uintptr{SYS_GETPID, coirGeteuid, coirGetegid} {
					r, _, _ := linux.Syscall6(trap, 0, 0, 0, 0, 0, 0)
					answer[i] = int32(r)
				}
			}
		case SO_TYPE, coirDomain, coirProtocol, SO_RCVTIMEO, SO_SNDTIMEO: // the last two are never set
			return s.askOption(level, opt, value, size)
		default:
			n = 0
		}
		if n > 0 {
			return coirAnswer(&answer, n, value, size)
		}
	}
	if level == IPPROTO_TCP && opt == TCP_INFO {
		return s.info(value, size)
	}
	if coirKeeps(level, opt) < 0 {
		coirOnKernel("it reads an option that sockets in memory do not have")
	}
	return s.askOption(level, opt, value, size)
}

// info implements TCP_INFO. The state is that of the socket in memory. All other fields are those of a new socket of
// the kernel. gRPC reads TCP_INFO for channelz.
//
//go:nosplit
//go:norace
func (s *coirSocket) info(value, size uintptr) Errno {
	const established, closed, closeWait, listen = 1, 7, 8, 10
	err := s.askOption(IPPROTO_TCP, TCP_INFO, value, size)
	if err != 0 || *(*int32)(unsafe.Pointer(size)) == 0 {
		return err
	}
	state := byte(closed)
	switch {
	case s.listening:
		state = listen
	case s.connected && !s.rst && s.in != nil && s.in.fin:
		state = closeWait
	case s.connected && !s.rst:
		state = established
	}
	*(*byte)(unsafe.Pointer(value)) = state
	return 0
}

// coirAnswer stores the first n bytes of answer as the value of an option, or as many as fit.
//
//go:nosplit
//go:norace
func coirAnswer(answer *[3]int32, n, value, size uintptr) Errno {
	if value == 0 || size == 0 {
		return EFAULT
	}
	have := (*int32)(unsafe.Pointer(size))
	if *have < 0 {
		return EINVAL
	}
	n = min(n, uintptr(*have))
	for i := uintptr(0); i < n; i++ {
		*(*byte)(unsafe.Pointer(value + i)) = (*[12]byte)(unsafe.Pointer(answer))[i]
	}
	*have = int32(n)
	return 0
}

// askOption reads an option from a new socket of the kernel that has the same options as s.
//
//go:nosplit
//go:norace
func (s *coirSocket) askOption(level, opt, value, size uintptr) Errno {
	typ := s.typ | coirCloexec
	fd, _, errno := linux.Syscall6(coirSocketCall, uintptr(s.domain), uintptr(typ), uintptr(s.proto), 0, 0, 0)
	if errno != 0 {
		coirOnKernel("it has too many files open")
	}
	for i := range s.options {
		if o := &s.options[i]; o.size > 0 {
			k, v := &coirKept[i], uintptr(unsafe.Pointer(&o.value))
			coirCall(coirSetsockopt, fd, uintptr(k.level), uintptr(k.opt), v, uintptr(o.size))
		}
	}
	err := coirCall(coirGetsockopt, fd, level, opt, value, size)
	coirCall(SYS_CLOSE, fd, 0, 0, 0, 0)
	return err
}

//go:nosplit
//go:norace
func coirCall(trap, a1, a2, a3, a4, a5 uintptr) Errno {
	_, _, errno := linux.Syscall6(trap, a1, a2, a3, a4, a5, 0)
	return Errno(errno)
}
