//go:build race

package coro

import (
	"sync/atomic"
	"testing"
)

// Control passes to a, b, a, b, and back to the goroutine that began. Tests of the root package check on whole programs
// what the detector sees.
func TestHandoff(t *testing.T) {
	var main, a, b Coro
	var trail atomic.Uint64
	step := func(n uint64) { trail.Store(trail.Load()*10 + n) }
	a.Init(func(func(struct{}) bool) {
		step(1)
		Transfer(&a, &b)
		step(3)
		a.Rest(&b)
	})
	b.Init(func(func(struct{}) bool) {
		step(2)
		Transfer(&b, &a)
		step(4)
		b.Rest(&main)
	})
	Transfer(&main, &a)
	if got := trail.Load(); got != 1234 {
		t.Fatalf("control went %d", got)
	}
}
