package shm

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// The memory of a side is a file without a name, which the side seals: after that its size cannot change, and it cannot
// be mapped for writing. The other side checks the seals before it maps the file.

// memfdCreate has the numbers of the system call, because package syscall lacks some of them.
var memfdCreate = map[string]uintptr{
	"386": 356, "amd64": 319, "arm": 385, "arm64": 279, "loong64": 279, "mips": 4354, "mipsle": 4354, "mips64": 5314,
	"mips64le": 5314, "ppc64": 360, "ppc64le": 360, "riscv64": 279, "s390x": 350,
}

const (
	memfdCloexec, memfdSealing = 1, 2

	addSeals, getSeals = 1033, 1034

	sealSeal, sealShrink, sealGrow, sealFutureWrite = 1, 2, 4, 16
	seals                                           = sealSeal | sealShrink | sealGrow | sealFutureWrite

	tmpfs = 0x01021994
)

// newMemory creates n bytes of memory. It also returns the file, for the other side; the caller closes the file.
func newMemory(n int) (file int, mem []byte, err error) {
	number, ok := memfdCreate[runtime.GOARCH]
	if !ok {
		return 0, nil, fmt.Errorf("no number of memfd_create for %s is known: %w", runtime.GOARCH, errors.ErrUnsupported)
	}
	name, _ := syscall.BytePtrFromString("coir-shm")
	fd, _, errno := syscall.Syscall(number, uintptr(unsafe.Pointer(name)), memfdCloexec|memfdSealing, 0)
	if errno != 0 {
		return 0, nil, os.NewSyscallError("memfd_create", errno)
	}
	file = int(fd)
	defer func() {
		if err != nil {
			_ = syscall.Close(file)
		}
	}()
	if err := syscall.Ftruncate(file, int64(n)); err != nil {
		return 0, nil, os.NewSyscallError("ftruncate", err)
	}
	mem, err = syscall.Mmap(file, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return 0, nil, os.NewSyscallError("mmap", err)
	}
	if _, errno := fcntl(file, addSeals, seals); errno != 0 {
		return 0, nil, errors.Join(os.NewSyscallError("fcntl(F_ADD_SEALS)", errno), syscall.Munmap(mem))
	}
	return file, mem, nil
}

func fcntl(fd int, cmd, arg uintptr) (int, syscall.Errno) {
	v, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), cmd, arg)
	return int(v), errno
}

// openMemory maps n bytes of the other side's memory for reading. It refuses memory that could disappear: a file of
// another kind, which may lack pages, or a file that can shrink.
func openMemory(file, n int) ([]byte, error) {
	var stat syscall.Stat_t
	if err := syscall.Fstat(file, &stat); err != nil {
		return nil, os.NewSyscallError("fstat", err)
	}
	var system syscall.Statfs_t
	if err := syscall.Fstatfs(file, &system); err != nil {
		return nil, os.NewSyscallError("fstatfs", err)
	}
	got, errno := fcntl(file, getSeals, 0)
	if errno != 0 || got&seals != seals || system.Type != tmpfs || stat.Size != int64(n) {
		return nil, fmt.Errorf("%w: its memory of %d bytes, for which %d were agreed, has the seals %#x, and needs %#x",
			ErrProtocol, stat.Size, n, got, seals)
	}
	mem, err := syscall.Mmap(file, 0, n, syscall.PROT_READ, syscall.MAP_SHARED)
	return mem, os.NewSyscallError("mmap", err)
}

// mapping is the memory of both sides. It stays mapped as long as this side uses it.
type mapping struct {
	users     atomic.Int32
	own, peer []byte
}

// newMapping returns a mapping with one user.
func newMapping(own, peer []byte) *mapping {
	m := &mapping{own: own, peer: peer}
	m.users.Store(1)
	return m
}

// use adds a user. There must already be one.
func (m *mapping) use() { m.users.Add(1) }

// release removes a user. The last one unmaps the memory.
func (m *mapping) release() error {
	if m.users.Add(-1) != 0 {
		return nil
	}
	return errors.Join(syscall.Munmap(m.own), syscall.Munmap(m.peer))
}

// pages returns n, rounded up to whole pages.
func pages(n int) int {
	page := os.Getpagesize()
	return (n + page - 1) / page * page
}
