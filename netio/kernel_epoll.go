//go:build linux

package netio

import (
	"os"
	"syscall"
	"unsafe"
)

// shortIsAll says that a TCP read that returned less than requested has taken all available data, and that later data
// causes an event. In two cases this does not hold: a peer that has closed or failed, which may cause no further event,
// and urgent data, at which a read stops. Those are reported as ended, so that reads keep trying.
const shortIsAll = true

// kernel is an epoll instance, and an eventfd that ends its wait.
type kernel struct {
	ep, waker int
	raw       [batch]syscall.EpollEvent
}

// noSlot is the user data of the eventfd.
const noSlot = -1

func (k *kernel) open() error {
	ep, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("epoll_create1", err)
	}
	const nonblock, cloexec = syscall.O_NONBLOCK, syscall.O_CLOEXEC
	fd, _, errno := syscall.Syscall(syscall.SYS_EVENTFD2, 0, nonblock|cloexec, 0)
	if errno != 0 {
		_ = syscall.Close(ep)
		return os.NewSyscallError("eventfd2", errno)
	}
	k.ep, k.waker = ep, int(fd)
	ev := syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: noSlot}
	if err := syscall.EpollCtl(ep, syscall.EPOLL_CTL_ADD, k.waker, &ev); err != nil {
		k.close()
		return os.NewSyscallError("epoll_ctl", err)
	}
	return nil
}

// close is called by the fiber that waits, after its last wait.
func (k *kernel) close() {
	_ = syscall.Close(k.waker)
	_ = syscall.Close(k.ep)
}

// wake makes wait return.
func (k *kernel) wake() {
	one := [8]byte{1, 1, 1, 1, 1, 1, 1, 1} // not zero in any byte order
	_, _ = syscall.Write(k.waker, one[:])
}

func (k *kernel) add(fd int, slot, gen, watches uint32) error {
	return k.control(syscall.EPOLL_CTL_ADD, fd, slot, gen, watches)
}

// change also makes the kernel report what is ready now.
func (k *kernel) change(fd int, slot, gen, watches uint32) error {
	return k.control(syscall.EPOLL_CTL_MOD, fd, slot, gen, watches)
}

// control always registers the events for reading, which also tell a writer that the peer has closed. It registers the
// events for writing only if watches contains them, because most descriptors never wait to write.
func (k *kernel) control(op, fd int, slot, gen, watches uint32) error {
	const edge = 1 << 31 // syscall.EPOLLET, which is negative
	ev := syscall.EpollEvent{
		Events: syscall.EPOLLIN | syscall.EPOLLRDHUP | syscall.EPOLLPRI | edge,
		Fd:     int32(slot),
		Pad:    int32(gen),
	}
	if watches&watchWrite != 0 {
		ev.Events |= syscall.EPOLLOUT
	}
	return os.NewSyscallError("epoll_ctl", syscall.EpollCtl(k.ep, op, fd, &ev))
}

// remove is called before the number is closed. If the file had another number, closing this one would not remove the
// registration.
func (k *kernel) remove(fd int) {
	var ev syscall.EpollEvent // required by old kernels
	_ = syscall.EpollCtl(k.ep, syscall.EPOLL_CTL_DEL, fd, &ev)
}

// wait returns the number of events that have come. It may return 0, even if block is true.
func (k *kernel) wait(events *[batch]event, block bool) int {
	var n int
	for {
		var err error
		if block {
			n, err = syscall.EpollWait(k.ep, k.raw[:], -1)
		} else { // the call does not block, so the Go runtime need not know about it
			r, _, errno := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, uintptr(k.ep), uintptr(unsafe.Pointer(&k.raw)),
				batch, 0, 0, 0)
			n = int(r)
			if errno != 0 {
				err = errno
			}
		}
		if err == nil {
			break
		}
		if err != syscall.EINTR {
			panic("netio: epoll_wait: " + err.Error()) // a bug: the descriptor belongs to k
		}
	}
	m := 0
	for i := range k.raw[:n] {
		ev := &k.raw[i]
		if ev.Fd == noSlot {
			var count [8]byte
			_, _ = syscall.Read(k.waker, count[:])
			continue
		}
		const (
			failed = syscall.EPOLLHUP | syscall.EPOLLERR
			ended  = failed | syscall.EPOLLRDHUP | syscall.EPOLLPRI
		)
		events[m] = event{
			slot: uint32(ev.Fd), gen: uint32(ev.Pad),
			read:  ev.Events&(syscall.EPOLLIN|ended) != 0,
			write: ev.Events&(syscall.EPOLLOUT|failed) != 0,
			ended: ev.Events&ended != 0,
		}
		m++
	}
	return m
}
