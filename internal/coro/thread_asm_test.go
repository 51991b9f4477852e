//go:build (386 || amd64 || arm64) && !purego && !race

package coro

import "testing"

// findLock finds the word in the Go releases that CI uses. Without it locks are still seen, but each switch costs
// microseconds.
func TestLockWordIsFound(t *testing.T) {
	if lockAt == 0 {
		t.Error("not found: has the runtime's record of a goroutine changed?")
	}
}
