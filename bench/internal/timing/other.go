//go:build !unix

package timing

import "time"

func used() time.Duration {
	panic("timing: processor time is measured by getrusage, which this system does not have; run this on linux or darwin")
}
