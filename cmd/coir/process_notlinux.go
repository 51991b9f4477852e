//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package main

import "syscall"

// endWithParent does nothing: the process stays if coir is killed.
func endWithParent(*syscall.SysProcAttr) {}
