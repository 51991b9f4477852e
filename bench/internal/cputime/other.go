//go:build !unix

package cputime

import "time"

func used() time.Duration {
	panic("cputime: processor time is measured by getrusage, which this system does not have; run this on linux or darwin")
}
