package spin

import (
	"sync/atomic"
	"testing"
)

// The goroutine that sets the flag gets the turn, although the test never waits for it: a load is a point.
func TestSpin(*testing.T) {
	var ready atomic.Bool
	go ready.Store(true)
	for !ready.Load() {
	}
}
