package main

import "syscall"

// endWithParent makes the kernel kill the process if coir is killed. More precisely, the kernel does so when the thread
// that started the process ends: no goroutine of coir is locked to a thread, so threads end with the process.
func endWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
