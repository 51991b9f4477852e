package main

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestMain also runs the peer processes of the series about connections.
func TestMain(m *testing.M) {
	flag.Parse()
	if *dial != "" {
		connect(*dial, *largest)
		return
	}
	os.Exit(m.Run())
}

// Every series runs, at its small sizes and in short rounds, and returns a figure for each size.
func TestEverySeriesRuns(t *testing.T) {
	for _, s := range all {
		t.Run(s.name, func(t *testing.T) {
			largest := 1_000
			if strings.HasPrefix(s.name, "workers-") {
				largest = 16
			}
			var sizes []int
			for _, r := range s.run(3, 10*time.Millisecond, largest) { // some systems count processor time in ticks of 4 ms
				sizes = append(sizes, r.N)
				if r.Cost <= 0 || r.Growth <= 0 || r.Lo > r.Growth || r.Growth > r.Hi {
					t.Errorf("a figure is missing or makes no sense: %v", r)
				}
				if r.N == s.sizes[0] && r.Growth != 1 {
					t.Errorf("the smallest size is not its own measure: %v", r)
				}
			}
			if want := slices.DeleteFunc(slices.Clone(s.sizes), func(n int) bool { return n > largest }); !slices.Equal(sizes, want) {
				t.Errorf("sizes %v were measured, want %v", sizes, want)
			}
		})
	}
}

func TestSeriesAreDescribed(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range all {
		if seen[s.name] {
			t.Errorf("%s is there twice", s.name)
		}
		seen[s.name] = true
		if s.what == "" || s.unit == "" || len(s.sizes) < 2 || !slices.IsSorted(s.sizes) {
			t.Errorf("%s lacks what, unit or sizes, or the smallest is not the first", s.name)
		}
	}
}
