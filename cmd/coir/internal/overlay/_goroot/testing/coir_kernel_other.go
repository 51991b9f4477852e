//go:build !linux || 386

package testing

import (
	"internal/coir"
	"time"
)

// coirInside returns false, because it is not implemented for this system: it cannot tell whether only this process can
// end the waits for descriptors. On linux/386, system calls on sockets have another form.
func coirInside([]coir.KernelWait, []int32) bool { return false }

var coirBegan = time.Now()

// coirUsed returns the real time since the process began.
func coirUsed() time.Duration { return time.Since(coirBegan) }
