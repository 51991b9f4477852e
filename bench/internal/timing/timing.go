// Package timing is shared by the commands that measure: their clock, memory, quantiles, and the choice of what to run.
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

// Now returns the time by which loops are measured: wall time, or the processor time of the process, user and system,
// as the operating system counts it for all threads.
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

// Held returns the bytes of the heap and of stacks, and the allocations so far. It collects twice: a stack is shrunk by
// one collection, and its old half is counted as free by the next.
func Held() (bytes, mallocs float64) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse), float64(m.Mallocs)
}

// Turns returns how many turns of a loop take about target. It believes the shortest of three runs: a machine that was
// busy for a moment would otherwise make the rounds so short that they measure what it costs to start the loop.
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

// Quantile returns the q-quantile of values, taking the mean of two neighbours
// in proportion where it falls between them. Of no values it is 0.
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

// Choose returns the elements that names lists, separated by commas, or all if it is empty. The process ends if there
// is no element of a name.
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
