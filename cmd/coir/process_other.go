//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package main

import (
	"os"
	"os/exec"
)

// contain does nothing: if it is interrupted, only the command itself is killed.
func contain(*exec.Cmd) {}

func endGroup(int) {}

// lockDir does nothing: the directory of a run that is killed stays.
func lockDir(string) (unlock func()) { return func() {} }

func removeStale(string) {}

// terminalWidth returns 0: how many columns a terminal has is not known.
func terminalWidth(*os.File) int { return 0 }
