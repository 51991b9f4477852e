//go:build !linux || 386

package testing

import (
	"internal/coir"
	"time"
)

// coirInside reports whether only this process can end the waits for descriptors. It is not implemented on this system,
// so the answer is no. linux/386 is one of them, because its system calls on sockets have another form.
func coirInside([]coir.KernelWait, []int32) bool { return false }

var coirBegan = time.Now()

// coirUsed returns the time that the process has used.
func coirUsed() time.Duration { return time.Since(coirBegan) }
