// Package reports has tests that fail, for what is told of them. TestReports of the command has what that is.
package reports

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"
)

func TestSelect(t *testing.T) {
	out, in, full := make(chan int), make(chan int, 1), make(chan int, 1)
	full <- 1
	select {
	case full <- 2:
	default:
	}
	in <- 1
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	timer := time.NewTimer(time.Hour)
	for range 2 {
		select {
		case <-ctx.Done():
		case <-in:
			timer.Stop()
		case out <- 1:
		case <-timer.C:
		}
	}
}

func TestReaders(*testing.T) {
	var mu sync.RWMutex
	mu.RLock()
	go func() {
		mu.Lock()
		mu.Unlock()
	}()
	time.Sleep(time.Second)
	mu.RLock()
}

func TestOnce(*testing.T) {
	var once sync.Once
	done := make(chan bool)
	once.Do(func() {
		go func() {
			once.Do(func() {})
			close(done)
		}()
		<-done
	})
}

// The goroutine has passed its point, and not its Lock, when the other one unlocks.
func TestLockedTwice(*testing.T) {
	var mu sync.Mutex
	mu.Lock()
	go func() {
		mu.Lock()
		mu.Lock()
	}()
	runtime.Gosched()
	mu.Unlock()
	select {}
}

func TestWaitsForLong(*testing.T) {
	never := make(chan bool)
	go func() { <-never }()
	time.Sleep(3 * time.Second)
	<-never
}

func TestArrows(t *testing.T) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	cond := sync.NewCond(&mu)
	values, quit := make(chan int), make(chan bool)
	ready := false
	wg.Go(func() {
		<-values
		<-quit
		mu.Lock()
		ready = true
		mu.Unlock()
		cond.Signal()
	})
	values <- 1
	close(quit)
	mu.Lock()
	for !ready {
		cond.Wait()
	}
	mu.Unlock()
	wg.Wait()
	t.Error("the end")
}

func TestMany(*testing.T) {
	jobs := make(chan int)
	for i := range 9 {
		go func() {
			for range jobs {
			}
			if i == 7 {
				select {}
			}
		}()
	}
	for i := range 9 {
		jobs <- i
	}
	close(jobs)
	time.Sleep(1)
	select {}
}

func TestPanics(*testing.T) {
	done := make(chan bool)
	go func() {
		defer close(done)
		var none *int
		*none = 1
	}()
	<-done
}

// It fails by a decision that comes after the last one that is recorded.
func TestManyDecisions(t *testing.T) {
	last, n, twice := -1, 0, false
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			for range 200_000 {
				if n++; n > 300_000 && n < 390_000 && last == i {
					twice = true
				}
				last = i
				runtime.Gosched()
			}
		})
	}
	wg.Wait()
	if twice {
		t.Error("twice")
	}
}

func TestPasses(*testing.T) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range 2 {
		wg.Go(func() {
			mu.Lock()
			mu.Unlock()
		})
	}
	wg.Wait()
}
