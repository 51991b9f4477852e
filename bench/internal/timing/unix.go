//go:build unix

package timing

import (
	"syscall"
	"time"
)

func used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic("timing: getrusage of the own process failed: " + err.Error())
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Switches returns how often the operating system has taken a processor from a thread of the process that wanted to go
// on. A round in which it has not changed was not disturbed by other processes.
func Switches() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic("timing: getrusage of the own process failed: " + err.Error())
	}
	return int64(u.Nivcsw) //nolint:unconvert // it has 32 bits on some systems
}
