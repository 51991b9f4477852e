package main

import "testing"

// Nested waits under one limit always end in coir. No test checks the other libraries, because their behaviour may
// change.
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
