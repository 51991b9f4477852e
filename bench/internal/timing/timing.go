// Package timing is shared by the commands that measure in rounds: the clock of a round, and quantiles of the figures
// of many.
package timing

import (
	"slices"
	"time"

	"github.com/coir-go/coir/bench/internal/cputime"
)

var start = time.Now()

// Now returns the time by which loops are measured: wall time, or the processor time of the process.
func Now(cpu bool) time.Duration {
	if cpu {
		return cputime.Used()
	}
	return time.Since(start)
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
