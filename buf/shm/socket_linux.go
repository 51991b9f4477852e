package shm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"

	"github.com/coir-go/coir/netio"
)

// socket is the connection of a link with shared memory. It passes the memory, and after that only bytes that mean
// "wake up". When it ends, the other process has ended.
//
// Rejected: an eventfd for the wake-ups. It is no faster than a byte through a socket, and both processes share the
// file: the other process could make it block, and a read or write here would not return.
type socket struct {
	fd    *netio.FD
	wakes atomic.Uint64
}

// socketOf returns another descriptor of the Unix socket of conn, or nil if conn is not a Unix socket.
func socketOf(conn net.Conn, name string) (*socket, error) {
	c, ok := conn.(syscall.Conn)
	if !ok || conn.LocalAddr() == nil || conn.LocalAddr().Network() != "unix" {
		return nil, nil
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	var fd int
	var errno syscall.Errno
	err = raw.Control(func(s uintptr) { fd, errno = fcntl(int(s), syscall.F_DUPFD_CLOEXEC, 0) })
	if err == nil && errno != 0 {
		err = os.NewSyscallError("fcntl", errno)
	}
	if err != nil {
		return nil, err
	}
	f, err := netio.NewFD(fd, name)
	if err != nil {
		_ = syscall.Close(fd)
		return nil, err
	}
	return &socket{fd: f}, nil
}

// offer sends a hello, and the file unless it is negative.
func (s *socket) offer(ctx context.Context, h hello, file int) error {
	var rights []byte
	if file >= 0 {
		rights = syscall.UnixRights(file)
	}
	for msg := h.encode(); len(msg) > 0; {
		var n int
		err := s.try(ctx, s.fd.WaitWrite, func(fd int) (err error) {
			n, err = syscall.SendmsgN(fd, msg, rights, nil, syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL)
			return os.NewSyscallError("sendmsg", err)
		})
		if err != nil {
			return err
		}
		msg, rights = msg[n:], nil
	}
	return nil
}

// answer receives a hello, and a file if there is one, which the caller closes. Otherwise the file is -1.
func (s *socket) answer(ctx context.Context) (h hello, file int, err error) {
	file = -1
	defer func() {
		if err != nil && file >= 0 {
			_ = syscall.Close(file)
		}
	}()
	b, got := make([]byte, helloLen), 0
	rights := make([]byte, syscall.CmsgSpace(4)) // the kernel closes files for which there is no room
	for got < len(b) {
		var n, r int
		err = s.try(ctx, s.fd.WaitRead, func(fd int) (err error) {
			n, r, _, _, err = syscall.Recvmsg(fd, b[got:], rights, syscall.MSG_DONTWAIT|syscall.MSG_CMSG_CLOEXEC)
			return os.NewSyscallError("recvmsg", err)
		})
		if err != nil {
			return h, file, err
		}
		for _, f := range files(rights[:r]) {
			if file >= 0 {
				_ = syscall.Close(file)
			}
			file = f
		}
		if n == 0 {
			return h, file, io.ErrUnexpectedEOF
		}
		got += n
	}
	h, err = decodeHello(b)
	if err == nil && (h.way == shared) != (file >= 0) {
		err = fmt.Errorf("%w: its memory is missing, or was not announced", ErrProtocol)
	}
	return h, file, err
}

// files returns the files attached to a message.
func files(rights []byte) (all []int) {
	messages, err := syscall.ParseSocketControlMessage(rights)
	if err != nil {
		return nil
	}
	for i := range messages {
		if fds, err := syscall.ParseUnixRights(&messages[i]); err == nil {
			all = append(all, fds...)
		}
	}
	return all
}

// try calls f until it returns something other than EAGAIN, and waits between calls.
func (s *socket) try(ctx context.Context, wait func(context.Context) error, f func(fd int) error) error {
	for {
		var err error
		if failed := s.fd.Control(func(fd int) { err = f(fd) }); failed != nil {
			return failed
		}
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EAGAIN):
			if err := wait(ctx); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

var wakeUp = []byte{1}

// wake wakes the other side. If the socket is full, there are already enough wake-ups in it.
func (s *socket) wake() {
	s.wakes.Add(1)
	_ = s.fd.Control(func(fd int) {
		_, _ = syscall.SendmsgN(fd, wakeUp, nil, nil, syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL)
	})
}

// drain takes some or all of the wake-ups that have arrived. It reports whether the socket has ended.
func (s *socket) drain() (end bool) {
	var b [256]byte
	err := s.fd.Control(func(fd int) {
		n, _, err := syscall.Recvfrom(fd, b[:], syscall.MSG_DONTWAIT)
		end = n == 0 && err == nil || err != nil && err != syscall.EAGAIN && err != syscall.EINTR
	})
	return end || err != nil
}

// watch arranges for f to be called once, when there is something to drain.
func (s *socket) watch(f func()) error { return s.fd.OnReadable(f) }

func (s *socket) close() { _ = s.fd.Close() }
