package main

import "testing"

// Nested waiting under one limit ends in coir, every time. What the other
// libraries do is theirs to change, so no test asserts it.
func TestCoirEnds(t *testing.T) {
	for _, c := range []struct {
		name    string
		program func() int
	}{
		{"same nursery", onCoir},
		{"nested run", onCoirRun},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range 20 {
				if ran := c.program(); ran != tasks*children {
					t.Fatalf("%d of %d children ran", ran, tasks*children)
				}
			}
		})
	}
}
