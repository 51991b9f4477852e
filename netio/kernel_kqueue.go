//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package netio

import (
	"os"
	"sync"
	"syscall"
)

// shortIsAll is false here, because it is not known whether the systems with kqueue do what kernel_epoll.go describes.
const shortIsAll = false

// kernel is a kqueue, and a pipe that ends its wait. The systems with kqueue have different types for the user data of
// a filter, so kernel keeps the slots itself, by number. If a number was closed and reused, an event of
// the earlier file may wake the waiters of the new one, which then try in vain.
type kernel struct {
	kq    int
	pipe  [2]int
	mu    sync.Mutex
	slots map[int][2]uint32 // slot and generation by number
	raw   [batch]syscall.Kevent_t
}

func (k *kernel) open() error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	kq, err := syscall.Kqueue()
	if err != nil {
		return os.NewSyscallError("kqueue", err)
	}
	syscall.CloseOnExec(kq)
	var pipe [2]int
	if err := syscall.Pipe(pipe[:]); err != nil {
		_ = syscall.Close(kq)
		return os.NewSyscallError("pipe", err)
	}
	for _, fd := range pipe {
		syscall.CloseOnExec(fd)
		_ = syscall.SetNonblock(fd, true)
	}
	k.kq, k.pipe, k.slots = kq, pipe, make(map[int][2]uint32)
	if err := k.register(pipe[0], syscall.EVFILT_READ); err != nil {
		k.close()
		return err
	}
	return nil
}

func (k *kernel) close() {
	_ = syscall.Close(k.pipe[0])
	_ = syscall.Close(k.pipe[1])
	_ = syscall.Close(k.kq)
}

// wake makes wait return.
func (k *kernel) wake() { _, _ = syscall.Write(k.pipe[1], []byte{1}) }

func (k *kernel) add(fd int, slot, gen, watches uint32) error {
	k.mu.Lock()
	k.slots[fd] = [2]uint32{slot, gen}
	k.mu.Unlock()
	err := k.change(fd, slot, gen, watches)
	if err != nil {
		k.remove(fd)
	}
	return err
}

// change also makes the kernel report what is ready now.
func (k *kernel) change(fd int, _, _, watches uint32) error {
	var err error
	if watches&watchRead != 0 {
		err = k.register(fd, syscall.EVFILT_READ)
	}
	if err == nil && watches&watchWrite != 0 {
		err = k.register(fd, syscall.EVFILT_WRITE)
	}
	return err
}

func (k *kernel) register(fd, filter int) error {
	var ev [1]syscall.Kevent_t
	syscall.SetKevent(&ev[0], fd, filter, syscall.EV_ADD|syscall.EV_CLEAR)
	_, err := syscall.Kevent(k.kq, ev[:], nil, nil)
	return os.NewSyscallError("kevent", err)
}

// remove is called before the number is closed. Closing it removes its filters.
func (k *kernel) remove(fd int) {
	k.mu.Lock()
	delete(k.slots, fd)
	k.mu.Unlock()
	for _, filter := range []int{syscall.EVFILT_READ, syscall.EVFILT_WRITE} {
		var ev [1]syscall.Kevent_t
		syscall.SetKevent(&ev[0], fd, filter, syscall.EV_DELETE)
		_, _ = syscall.Kevent(k.kq, ev[:], nil, nil)
	}
}

// wait returns the number of events that have come. It may return 0, even if block is true.
func (k *kernel) wait(events *[batch]event, block bool) int {
	var timeout *syscall.Timespec
	if !block {
		timeout = new(syscall.Timespec)
	}
	n, err := syscall.Kevent(k.kq, nil, k.raw[:], timeout)
	for err == syscall.EINTR {
		n, err = syscall.Kevent(k.kq, nil, k.raw[:], timeout)
	}
	if err != nil {
		panic("netio: kevent: " + err.Error()) // a bug: the descriptor belongs to k
	}
	m := 0
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range k.raw[:n] {
		ev := &k.raw[i]
		if int(ev.Ident) == k.pipe[0] {
			var b [16]byte
			_, _ = syscall.Read(k.pipe[0], b[:])
			continue
		}
		at, ok := k.slots[int(ev.Ident)]
		if !ok {
			continue
		}
		ended := ev.Flags&syscall.EV_EOF != 0
		events[m] = event{
			slot: at[0], gen: at[1],
			read:  ev.Filter == syscall.EVFILT_READ,
			write: ev.Filter == syscall.EVFILT_WRITE,
			ended: ended,
		}
		m++
	}
	return m
}
