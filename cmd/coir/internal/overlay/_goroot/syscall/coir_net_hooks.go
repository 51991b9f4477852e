//go:build unix

package syscall

import (
	"internal/coir"
	"internal/race"
	"unsafe"
)

// This file contains what packages os, os/signal and internal/poll call, what runs before a process is started, and
// pipes in memory.

// CoirBegins is the point before an operation of package internal/poll, which may have to wait for another operation
// first.
//
//go:norace
func CoirBegins(fd int, read bool) {
	s := coirSocketOf(fd)
	if s == nil {
		return
	}
	op := uint8(coir.OpNetWrite)
	switch {
	case s.listening:
		op = coir.OpAccept
	case read:
		op = coir.OpNetRead
	}
	coirPointBefore(s.named(op), unsafe.Pointer(s.obj))
}

// CoirCloses is the point before a descriptor is closed.
//
//go:norace
func CoirCloses(fd int) {
	if s := coirSocketOf(fd); s != nil {
		s.point(coir.OpNetClose)
	}
}

// CoirCopies is called before a descriptor is copied, or used outside of package os. Only the kernel can do that.
//
//go:norace
func CoirCopies(fd int) {
	if s := coirSocketOf(fd); s != nil && s.pipe {
		coirOnKernel("it uses the descriptor of a pipe")
	} else if s != nil {
		coirOnKernel("it copies the descriptor of a socket")
	}
}

// CoirPipe makes a pipe in memory, which is a stream of the local domain with one direction. ok is false if the kernel
// must make it.
//
//go:norace
func CoirPipe() (r, w int, ok bool) {
	const typ = SOCK_STREAM | coirNonblock
	if r, _, ok = coirMakeSocket(AF_UNIX, typ, 0); !ok {
		return 0, 0, false
	}
	w, _, _ = coirMakeSocket(AF_UNIX, typ, 0)
	from, to := coirFind(w), coirFind(r)
	to.obj = from.obj
	from.pipe, from.connected, from.noRead = true, true, true
	to.pipe, to.second, to.connected, to.noWrite = true, true, true, true
	from.pipes(to)
	return r, w, true
}

// CoirSignal delivers a signal that a schedule sends to its own process. Package os/signal sets it; it is nil in a
// program without that package. It returns false if the program has not asked to be notified of the signal.
var CoirSignal func(sig int) bool

// CoirRun returns the number of the schedule that the caller belongs to, or 0.
//
//go:norace
func CoirRun() uint32 { return coirRun() }

// CoirKill delivers a signal in memory if possible, and reports whether it did.
//
//go:norace
func CoirKill(pid int, sig Signal) bool {
	return coir.On && pid == Getpid() && CoirSignal != nil && coirRun() != 0 && CoirSignal(int(sig))
}

// coirForked is the last schedule that started a process.
var coirForked uint32

// coirForks is called before a process is started. That process may connect to a socket in memory that has a name or
// gets one later, or use the port of such a socket.
//
//go:norace
func coirForks() {
	if !coir.On || coirRun() == 0 {
		return
	}
	if coirForked = coirRun(); coirNet.run == coirForked && coirNet.named {
		coirOnKernel("it starts a process")
	}
}

// CoirInMemory reports whether a descriptor belongs to a socket or a pipe in memory.
//
//go:norace
func CoirInMemory(fd int) bool { return coirSocketOf(fd) != nil }

// CoirWritev writes to a socket in memory. ok is false if the descriptor is the kernel's.
//
//go:norace
func CoirWritev(fd int, iovecs []Iovec) (n uintptr, err error, ok bool) {
	s := coirSocketOf(fd)
	if s == nil {
		return 0, nil, false
	}
	size := 0
	for i := range iovecs {
		size += int(iovecs[i].Len)
	}
	all := make([]byte, 0, size) // so that it is one operation with one point
	for i := range iovecs {
		part := unsafe.Slice(iovecs[i].Base, int(iovecs[i].Len))
		at := len(all)
		all = all[:at+len(part)]
		coirCopy(all[at:], part)
		if race.Enabled && len(part) > 0 {
			race.ReadRange(unsafe.Pointer(iovecs[i].Base), len(part))
		}
	}
	k, err := s.write(all)
	return uintptr(k), err, true
}
