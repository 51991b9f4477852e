package bubble

import (
	"runtime"
	"sync/atomic"
	"testing"
)

// made counts the values. In a race build they are made in a goroutine that is ordered after nothing.
var made atomic.Int32

// TestRegistry: each bubble has its own value while that value is in use, and a new one after it was collected.
func TestRegistry(t *testing.T) {
	type value [64]int
	var r Registry[value]
	made.Store(0)
	create := func() *value { made.Add(1); return new(value) }
	one, two := r.Get(1, create), r.Get(2, create)
	if one == two || r.Get(1, create) != one || r.Get(2, create) != two || made.Load() != 2 {
		t.Fatalf("%d values were made for two bubbles", made.Load())
	}
	runtime.KeepAlive(one)
	for range 5 { // a value is gone after the collection that finds it
		runtime.GC()
	}
	r.Get(1, create)
	if made.Load() != 3 {
		t.Errorf("after a collection %d values were made, want a new one for the first bubble", made.Load())
	}
	entries := 0
	for e := r.list; e != nil; e = e.next {
		entries++
	}
	if entries != 2 || r.Get(2, create) != two {
		t.Errorf("%d entries are left, want those of two bubbles", entries)
	}
	runtime.KeepAlive(two)
}
