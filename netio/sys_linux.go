package netio

import (
	"net"
	"syscall"
)

func accept(fd int) (int, syscall.Sockaddr, error) {
	return syscall.Accept4(fd, syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC)
}

func setKeepAlive(fd int, keep net.KeepAliveConfig) {
	_ = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_KEEPALIVE, 1)
	if n, ok := seconds(keep.Idle); ok {
		_ = syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE, n)
	}
	if n, ok := seconds(keep.Interval); ok {
		_ = syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL, n)
	}
	if keep.Count == 0 {
		keep.Count = 9
	}
	if keep.Count > 0 {
		_ = syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT, keep.Count)
	}
}
