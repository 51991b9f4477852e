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

// Switches returns how often the operating system has taken a processor from a running thread of the process. If it has
// not changed during a round, other processes have not disturbed the round.
func Switches() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic("timing: getrusage of the own process failed: " + err.Error())
	}
	return int64(u.Nivcsw) //nolint:unconvert // it has 32 bits on some systems
}
