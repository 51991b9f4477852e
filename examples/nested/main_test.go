package main

// The program always ends, and its limit holds while more tasks than that wait.

import (
	"fmt"
	"strings"
	"testing"
)

// Spec: NU-14 (Limit bounds the children that run)
// Spec: NU-15 (a child that waits for children gives its place up)
// Spec: SC-49 (a waiting fiber leaves its worker)
func TestItEnds(t *testing.T) {
	repetitions := 20
	if testing.Short() {
		repetitions = 3
	}
	for range repetitions {
		var out strings.Builder
		if err := run(&out); err != nil {
			t.Fatal(err)
		}
		var ran, waited int
		_, last, _ := strings.Cut(out.String(), "\n")
		if _, err := fmt.Sscanf(last, "ended: at most %d ran at once, while up to %d tasks waited", &ran, &waited); err != nil {
			t.Fatalf("%v in %q", err, out.String())
		}
		if ran > places || waited <= places {
			t.Fatalf("%d ran at once with %d places, %d tasks waited", ran, places, waited)
		}
	}
}
