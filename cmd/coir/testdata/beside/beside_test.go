// Package beside has goroutines that wait for locks of each other, beside something that may end other waits: a signal, or
// a goroutine from before the test.
package beside

import (
	"os"
	"os/signal"
	"sync"
	"testing"
)

func lockBoth(first, second *sync.Mutex) {
	first.Lock()
	defer first.Unlock()
	second.Lock()
	defer second.Unlock()
}

// Expect: deadlock
func TestBugLocksBesideSignal(t *testing.T) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	defer signal.Stop(signals)
	var a, b sync.Mutex
	var wg sync.WaitGroup
	wg.Go(func() { lockBoth(&a, &b) })
	wg.Go(func() { lockBoth(&b, &a) })
	wg.Wait()
}

// echo answers each request, in a goroutine from before the test.
var echo = func() chan chan int {
	requests := make(chan chan int)
	go func() {
		for r := range requests {
			r <- 1
		}
	}()
	return requests
}()

// Expect: deadlock
func TestBugLocksBesideGoroutine(t *testing.T) {
	answer := make(chan int)
	echo <- answer
	<-answer
	var a, b sync.Mutex
	var wg sync.WaitGroup
	wg.Go(func() { lockBoth(&a, &b) })
	wg.Go(func() { lockBoth(&b, &a) })
	wg.Wait()
}
