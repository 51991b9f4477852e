//go:build !unix

package timing

import "time"

func used() time.Duration {
	panic("timing: processor time is measured by getrusage, which this system does not have; run this on linux or darwin")
}

// Switches is for systems with getrusage. Here it is always 0, so that every round counts.
func Switches() int64 { return 0 }
