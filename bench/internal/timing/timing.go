// Package timing holds the code that the measuring commands share: clock, memory, quantiles, and the choice of what to
// run.
package timing

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

var start = time.Now()

// Now returns the time for measuring loops: wall time, or the processor time of all threads of the process, user and
// system, as the operating system counts it.
func Now(cpu bool) time.Duration {
	if cpu {
		return used()
	}
	return time.Since(start)
}

// A Cost is what a function has used.
type Cost struct {
	Time    time.Duration
	Mallocs float64
}

// Of runs fn and returns its cost, by the clock that Now describes.
func Of(cpu bool, fn func()) Cost {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := Now(cpu)
	fn()
	took := Now(cpu) - began
	runtime.ReadMemStats(&after)
	return Cost{took, float64(after.Mallocs - before.Mallocs)}
}

// Held returns the bytes used by the heap and by stacks, and the number of allocations so far. It collects garbage
// twice: one collection shrinks a stack, and the next one counts its old half as free.
func Held() (bytes, mallocs float64) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse), float64(m.Mallocs)
}

// Turns returns how many turns of a loop take about target. It uses the shortest of three runs. Otherwise, if the
// machine was busy for a moment, the rounds would be so short that they measure the start of the loop.
func Turns(cpu bool, target time.Duration, loop func(turns int)) int {
	for n := 1; ; n *= 2 {
		d := time.Duration(math.MaxInt64)
		for try := 0; try < 3 && d >= target/4; try++ {
			began := Now(cpu)
			loop(n)
			d = min(d, Now(cpu)-began)
		}
		if d >= target/4 {
			return max(1, int(float64(n)*float64(target)/float64(d)))
		}
	}
}

// Quantile returns the q-quantile of values. If it falls between two values, it interpolates between them. It returns 0
// if there are no values.
func Quantile(values []float64, q float64) float64 {
	v := slices.Sorted(slices.Values(values))
	if len(v) == 0 {
		return 0
	}
	at := q * float64(len(v)-1)
	i := int(at)
	if i+1 == len(v) {
		return v[i]
	}
	return v[i] + (at-float64(i))*(v[i+1]-v[i])
}

// Choose returns the elements whose names are in names, separated by commas, or all if names is empty. If a name is
// unknown, the process ends.
func Choose[E any](names string, all []E, name func(*E) string) (chosen []*E) {
	for i := range all {
		chosen = append(chosen, &all[i])
	}
	if names == "" {
		return chosen
	}
	every := chosen
	chosen = nil
	for wanted := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(every, func(e *E) bool { return name(e) == strings.TrimSpace(wanted) })
		if i < 0 {
			Fail("there is nothing called %q", wanted)
		}
		chosen = append(chosen, every[i])
	}
	return chosen
}

// Fail ends the process with exit code 2 and a message.
func Fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, filepath.Base(os.Args[0])+": "+format+"\n", args...)
	os.Exit(2)
}
