package main

// The program always ends, and its limit holds although more tasks than the limit wait.

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/coir-go/coir"
)

// The runtime has two workers and never a third. If a waiting task kept its worker, its children could not run.
//
// Spec: NU-14 (Limit bounds the children that run)
// Spec: NU-15 (a child that waits for children gives its place up)
// Spec: SC-49 (a waiting fiber leaves its worker)
func TestItEnds(t *testing.T) {
	repetitions := 20
	if testing.Short() {
		repetitions = 3
	}
	rt := coir.NewRuntime(coir.WithWorkers(2), coir.WithMaxWorkers(2))
	defer func() {
		if err := rt.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	for range repetitions {
		var out strings.Builder
		err := rt.Run(t.Context(), func(context.Context, *coir.Nursery) error { return run(&out) }) // in a fiber of rt
		if err != nil {
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
