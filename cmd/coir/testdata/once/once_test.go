// Package once has a failure in whose path the process does something for the first time.
package once

import (
	"sync"
	"testing"
)

var (
	once sync.Once
	mu   sync.Mutex
	n    int
)

// load does what a process does once, in several steps.
func load() {
	for range 5 {
		mu.Lock()
		n++
		mu.Unlock()
	}
}

func TestOnce(t *testing.T) {
	var order []string
	var guard sync.Mutex
	add := func(name string) {
		guard.Lock()
		defer guard.Unlock()
		order = append(order, name)
	}
	var all sync.WaitGroup
	for _, name := range []string{"a", "b", "c"} {
		all.Go(func() { add(name) })
	}
	all.Wait()
	if order[0] == "b" && order[1] == "a" {
		once.Do(load)
		mu.Lock()
		defer mu.Unlock()
		t.Error(order, n)
	}
}
