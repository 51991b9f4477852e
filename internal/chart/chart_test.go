package chart

import (
	"slices"
	"testing"
)

func TestGrouped(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := Grouped(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}

func TestColumns(t *testing.T) {
	waits := func(i int) bool { return i >= 8 }
	acts := func(i int) bool { return i%2 == 0 }
	if got := Columns(10, 10, waits, acts); !slices.Equal(got, []int{0, 2, 4, 6, 8, 9}) {
		t.Error(got)
	}
	if got := Columns(10, 2, waits, acts); !slices.Equal(got, []int{0, 8}) {
		t.Error(got)
	}
}
