package main

import (
	"sync"
	"testing"
	"time"
)

// Every program runs, on two numbers of workers and in short rounds, and gives a figure
// for each.
func TestEveryProgramRuns(t *testing.T) {
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			rows := p.run([]int{1, 4}, 2, 5*time.Millisecond)
			if len(rows) != 2 || rows[0].workers != 1 || rows[1].workers != 4 || rows[0].growth != 1 {
				t.Errorf("want a row for 1 worker, which is its own measure, and one for 4: %v", rows)
			}
			for _, r := range rows {
				if r.cost <= 0 || r.growth <= 0 || r.lo > r.growth || r.growth > r.hi {
					t.Errorf("a figure is missing or makes no sense: %v", r)
				}
			}
		})
	}
}

// A lock that is waited for is found, by the function that releases it.
func TestContended(t *testing.T) {
	locks := contended(1000, func() {
		// A goroutine that has waited for the lock is seen to have done so when it is released, which
		// takes as many tries as it needs to meet somebody there.
		var mu sync.Mutex
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for end := time.Now().Add(100 * time.Millisecond); time.Now().Before(end); {
					locked(&mu)
				}
			})
		}
		all.Wait()
	})
	if len(locks) == 0 || locks[0].function != "coir/bench/scale.locked" || locks[0].waits <= 0 || locks[0].share <= 0.5 {
		t.Errorf("the lock that was waited for is not the first: %v", locks)
	}
}

//go:noinline
func locked(mu *sync.Mutex) {
	mu.Lock()
	time.Sleep(10 * time.Microsecond)
	mu.Unlock()
}
