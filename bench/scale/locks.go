package main

import (
	"cmp"
	"maps"
	"runtime"
	"slices"
	"strings"
)

// A lock is one that was waited for.
type lock struct {
	function string  // that released it
	waits    float64 // of 1,000 operations
	share    float64 // of the time waited for all locks
}

const shown = 4 // locks of a row: the rest is noise

// contended runs f, which does n operations, and returns the locks that were waited
// for, the worst first.
func contended(n int, f func()) []lock {
	defer runtime.SetMutexProfileFraction(runtime.SetMutexProfileFraction(1))
	before := waited()
	f()
	var all float64
	locks := make(map[string]*lock)
	for function, after := range waited() {
		was := before[function]
		l := &lock{
			function: function,
			waits:    1000 * float64(after.count-was.count) / float64(n),
			share:    float64(after.cycles - was.cycles),
		}
		if l.share > 0 {
			locks[function] = l
			all += l.share
		}
	}
	sorted := slices.SortedFunc(maps.Values(locks), func(a, b *lock) int { return cmp.Compare(b.share, a.share) })
	var worst []lock
	for _, l := range sorted[:min(shown, len(sorted))] {
		l.share /= all
		worst = append(worst, *l)
	}
	return worst
}

type waits struct{ count, cycles int64 }

// waited is the mutex profile, by the function that released a lock.
func waited() map[string]waits {
	var records []runtime.BlockProfileRecord
	for n, ok := 0, false; !ok; {
		records = make([]runtime.BlockProfileRecord, n+64)
		n, ok = runtime.MutexProfile(records)
		records = records[:min(n, len(records))]
	}
	sums := make(map[string]waits)
	for _, r := range records {
		name := releaser(r.Stack())
		s := sums[name]
		sums[name] = waits{s.count + r.Count, s.cycles + r.Cycles}
	}
	return sums
}

// releaser is the innermost function of a stack that is not of the standard library; if
// there is none, the innermost.
func releaser(stack []uintptr) string {
	const module = "github.com/coir-go/coir"
	frames := runtime.CallersFrames(stack)
	first := ""
	for {
		f, more := frames.Next()
		if first == "" {
			first = f.Function
		}
		if rest, ok := strings.CutPrefix(f.Function, module); ok {
			return "coir" + rest
		}
		if !more {
			return first
		}
	}
}
