package shm

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/coir-go/coir"
)

// patience lets a side that is about to sleep look again for a short while, if its last wait was a short one. A sleep
// and its end cost both processes several microseconds, which two that work at about the same pace would pay for each
// buffer. Between two looks other fibers run. A side that waits for long goes to sleep at once: an idle link takes no
// processor time.
type patience struct{ short atomic.Bool } // whether the last wait was a short one

const (
	looking   = 20 * time.Microsecond
	shortWait = 4 * looking // a sleep this short is mostly overhead
)

// others says that the other process can run while this one looks.
var others = runtime.NumCPU() > 1

// look calls found until it returns true, for a short while. It reports whether it did.
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

// slept records a wait that began with a look at that time.
func (p *patience) slept(begin time.Time) { p.short.Store(time.Since(begin) < shortWait) }
