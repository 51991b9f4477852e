//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"unsafe"
)

// contain makes a command the first process of a session, so that a signal reaches all processes that it starts, unless
// they make sessions themselves. The session has no terminal: a test that opens the terminal gets an error, as in CI,
// while in a mere process group it would be stopped.
func contain(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	endWithParent(c.SysProcAttr)
	c.Cancel = func() error {
		endGroup(c.Process.Pid)
		return nil
	}
}

// endGroup kills the remaining processes that a command has started.
func endGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

// lockDir locks a temporary directory until unlock is called or the process ends. The lock file gets its name only
// after it is locked. Otherwise another run could take the directory for stale.
func lockDir(dir string) (unlock func()) {
	lock, err := os.Create(filepath.Join(dir, "lock.new"))
	if err != nil {
		return func() {}
	}
	if tryLock(lock) {
		_ = os.Rename(lock.Name(), filepath.Join(dir, "lock"))
	}
	return func() { _ = lock.Close() }
}

// removeStale removes the temporary directories below base whose processes have ended.
func removeStale(base string) {
	for _, dir := range entries(base, tempPrefix, "") {
		lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if tryLock(lock) {
			_ = os.RemoveAll(dir)
		}
		_ = lock.Close()
	}
}

func tryLock(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

// terminalWidth returns how many columns a terminal has, or 0 if it does not say.
func terminalWidth(f *os.File) int {
	var size struct{ rows, columns, x, y uint16 }
	_, _, err := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&size)))
	if err != 0 {
		return 0
	}
	return int(size.columns)
}
