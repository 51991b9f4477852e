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
