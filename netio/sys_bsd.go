//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package netio

import (
	"net"
	"syscall"
)

func accept(fd int) (int, syscall.Sockaddr, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	s, peer, err := syscall.Accept(fd) // does not block, because fd is non-blocking
	if err != nil {
		return 0, nil, err
	}
	syscall.CloseOnExec(s)
	if err := syscall.SetNonblock(s, true); err != nil {
		_ = syscall.Close(s)
		return 0, nil, err
	}
	return s, peer, nil
}

// setKeepAlive does not set the times: package syscall does not define their names on all of these systems.
func setKeepAlive(fd int, _ net.KeepAliveConfig) {
	_ = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_KEEPALIVE, 1)
}
