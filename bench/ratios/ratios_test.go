package main

import (
	"io"
	"testing"
	"time"
)

// The promised rows and bounds. Others may be added.
func TestTableHasWhatWasPromised(t *testing.T) {
	promised := []struct {
		name        string
		bound, goal float64
	}{
		{"yield-limit", 1.75, 1.5},
		{"yield", 1.1, 0.9},
		{"spawn-join", 0.7, 0.45},
		{"spawn-join-errgroup", 0.65, 0.45},
		{"spawn-join-ants", 0.6, 0.4},
		{"spawn-join-pond", 0.6, 0.4},
		{"timer-arm-stop", 0.35, 0.2},
		{"sleep-100k", 1.2, 1.0},
		{"parked-memory", 1.2, 1.13},
		{"fork-join", 0.9, 0.7},
		{"wake-p99", 1.0, 0.5},
		{"sim-pingpong", 20, 5},
		{"sim-pipeline", 20, 5},
		{"sim-select", 20, 5},
		{"sim-spawn", 20, 5},
		{"sim-crowd", 20, 5},
		{"sim-schedule", 20, 5},
	}
	for _, p := range promised {
		c := find(p.name)
		if c == nil {
			t.Errorf("%s is not in the table", p.name)
			continue
		}
		if c.bound != p.bound || c.goal != p.goal {
			t.Errorf("%s has bound %g and goal %g, promised were %g and %g", p.name, c.bound, c.goal, p.bound, p.goal)
		}
	}
	seen := map[string]bool{}
	for _, c := range table {
		if seen[c.name] {
			t.Errorf("%s is in the table twice", c.name)
		}
		seen[c.name] = true
		if c.what == "" || c.against == "" || c.unit == "" || c.rounds == 0 {
			t.Errorf("%s lacks what, against, unit or rounds", c.name)
		}
	}
}

// Every side with a loop works: both sides of each comparison run for a few
// short rounds and give a figure.
func TestEverySideRuns(t *testing.T) {
	for _, c := range table {
		t.Run(c.name, func(t *testing.T) {
			if c.unit != "ns" || c.rounds == longRounds {
				t.Skip("measured in processes of its own, or for a second a round")
			}
			c.round = 0
			r := compare(&c, 2, 10*time.Millisecond, io.Discard) // some systems count processor time in ticks of 4 ms
			if r.Coir <= 0 || r.Other <= 0 || r.Ratio <= 0 {
				t.Errorf("a figure is missing: %+v", r)
			}
		})
	}
}

func TestFibForksCountsTheForks(t *testing.T) {
	var forks func(k int) int
	forks = func(k int) int {
		if k < 2 {
			return 0
		}
		return 1 + forks(k-1) + forks(k-2)
	}
	if got := forks(fibArg); got != fibForks {
		t.Errorf("fib(%d) forks %d times, fibForks says %d", fibArg, got, fibForks)
	}
}
