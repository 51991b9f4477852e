package main

import (
	"slices"
	"testing"
)

// The promised comparisons of channels and select, and their bounds.
func TestTableHasTheChannels(t *testing.T) {
	for _, p := range []struct {
		name        string
		bound, goal float64
	}{
		{"rendezvous", 0.55, 0.45},
		{"rendezvous-limit", 3.2, 2.5},
		{"buffered-64", 0.6, 0.45},
		{"mpmc-4x4-128", 0.75, 0.55},
		{"pipeline-8", 0.6, 0.48},
		{"fan-in-1000", 0.75, 0.6},
		{"select-2", 0.65, 0.5},
		{"select-8", 0.68, 0.5},
		{"select-priority", 0.65, 0.5},
		{"selector-1000", 0.02, 0.005},
		{"recv-timeout", 0.25, 0.2},
		{"recv-cancel", 0.4, 0.33},
		{"unlimited-burst-chanqueue", 0.4, 0.2},
		{"unlimited-burst-chanx", 0.4, 0.2},
		{"goroutines-both-ends", 1.25, 1.0},
	} {
		c := find(p.name)
		if c == nil {
			t.Errorf("%s is not in the table", p.name)
			continue
		}
		if c.bound != p.bound || c.goal != p.goal {
			t.Errorf("%s has bound %g and goal %g, promised were %g and %g", p.name, c.bound, c.goal, p.bound, p.goal)
		}
	}
}

func TestSharesAddUp(t *testing.T) {
	for _, n := range []int{0, 1, 3, 4, 7, 1000} {
		for k := 1; k <= 8; k++ {
			sum := 0
			for i := range k {
				sum += share(n, i, k)
			}
			if sum != n {
				t.Errorf("the %d shares of %d add up to %d", k, n, sum)
			}
		}
	}
}

func TestPartsAreEverythingOnce(t *testing.T) {
	all := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	for k := 1; k <= len(all); k++ {
		var got []int
		for i := range k {
			got = append(got, part(all, i, k)...)
		}
		slices.Sort(got)
		if !slices.Equal(got, all) {
			t.Errorf("in %d parts: %v", k, got)
		}
	}
}
