//go:build !coirinterleave

package channel

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestNumbersGrow: each channel has a larger number than those made before it.
//
// Spec: CH-54 (channel ids order their locks)
func TestNumbersGrow(t *testing.T) {
	last := NewObjectID()
	for range 1000 {
		c := new(Chan[int])
		c.Init(0, nil, Wait, nil)
		if c.ID() <= last {
			t.Fatalf("a channel has the number %d, one before it %d", c.ID(), last)
		}
		last = c.ID()
	}
}

// TestLockAll: channels are sorted, each is locked once, and all are unlocked again.
//
// Spec: CH-54 (channel ids order their locks)
// Spec: SE-12 (channel locks are taken in the order of ids)
func TestLockAll(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for n := range 70 {
		all := make([]*Core, n)
		for i := range all {
			c := new(Chan[int])
			c.Init(0, nil, Wait, nil)
			all[i] = &c.Core
			if i > 0 && rnd.IntN(4) == 0 {
				all[i] = all[rnd.IntN(i)]
			}
		}
		rnd.Shuffle(n, func(i, j int) { all[i], all[j] = all[j], all[i] })
		list := slices.Clone(all)
		LockAll(list) // would not return if it locked a channel twice
		if !slices.IsSortedFunc(list, func(a, b *Core) int { return cmp.Compare(a.ID(), b.ID()) }) {
			t.Errorf("%d channels are not locked in the order of their numbers", n)
		}
		for _, c := range all {
			if c.mu.TryLock() {
				t.Fatalf("of %d channels one is not locked", n)
			}
		}
		UnlockAll(list)
		for _, c := range all {
			if !c.mu.TryLock() {
				t.Fatalf("of %d channels one is still locked", n)
			}
			c.Unlock()
		}
		if slices.ContainsFunc(list, func(c *Core) bool { return c != nil }) {
			t.Errorf("the list of %d channels keeps one", n)
		}
	}
}
