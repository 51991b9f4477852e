// Package simtest says how many schedules the tests of this module run.
package simtest

import (
	"testing"

	"github.com/coir-go/coir/internal/soak"
	"github.com/coir-go/coir/sim"
)

// Schedules returns how many schedules a test runs: n, fewer with -short, or 100,000 if COIR_SOAK is set.
func Schedules(n int) sim.Option {
	switch {
	case soak.On():
		n = 100_000
	case testing.Short():
		n = min(n, max(n/20, 200))
	}
	return sim.WithSchedules(n)
}
