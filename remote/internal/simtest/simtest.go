// Package simtest says how many schedules the tests of this module run.
package simtest

import (
	"os"
	"testing"

	"github.com/coir-go/coir/sim"
)

// Schedules returns how many schedules a test runs: n, fewer with -short, or 100,000 if COIR_SOAK is 1.
func Schedules(n int) sim.Option {
	switch {
	case os.Getenv("COIR_SOAK") == "1":
		n = 100_000
	case testing.Short():
		n = min(n, max(n/20, 200))
	}
	return sim.WithSchedules(n)
}
