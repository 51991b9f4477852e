package shm

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/coir-go/coir"
)

// patience lets a side that is about to sleep check again for a short while, if its last wait was short. Falling asleep
// and waking up cost both processes several microseconds, which two processes of about the same pace would otherwise
// pay for each buffer. Between two checks other fibers run. A side whose waits are long goes to sleep at once, so an
// idle link takes no processor time.
type patience struct{ short atomic.Bool } // whether the last wait was short

const (
	looking   = 20 * time.Microsecond
	shortWait = 4 * looking // a sleep this short is mostly overhead
)

// others reports whether the other process can run while this one checks.
var others = runtime.NumCPU() > 1

// look calls found for a short while until it returns true. It reports whether found returned true.
func (p *patience) look(ctx context.Context, found func() bool) bool {
	if !others || !p.short.Load() {
		return false
	}
	for begin := time.Now(); time.Since(begin) < looking; {
		for range 8 {
			if found() {
				return true
			}
			if coir.Yield(ctx) != nil {
				return false
			}
		}
	}
	return false
}

// slept records a wait that started at begin.
func (p *patience) slept(begin time.Time) { p.short.Store(time.Since(begin) < shortWait) }
