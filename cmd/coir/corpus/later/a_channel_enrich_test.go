//go:build corpus

package later

import (
	"sync"
	"testing"
)

// A pipeline stage reads orders, adds a price and passes them on until its input ends or the service is told to
// stop. It closes its output after the last order, but the early exit for stop skips the close. If the stop request
// wins while the stage has an order in hand, the consumer waits for more results for ever.
//
// Class: channel
// Expect: deadlock
type enrichedOrder struct {
	id    int
	price int
}

func enrichFeed(n int, stop <-chan struct{}, wg *sync.WaitGroup) <-chan int {
	in := make(chan int)
	wg.Add(1)
	go func() {
		defer wg.Done()
		defer close(in)
		for id := 1; id <= n; id++ {
			select {
			case in <- id:
			case <-stop:
				return
			}
		}
	}()
	return in
}

func enrichStage(in <-chan int, stop <-chan struct{}) <-chan enrichedOrder {
	out := make(chan enrichedOrder)
	go func() {
		for id := range in {
			select {
			case out <- enrichedOrder{id, id * 100}:
			case <-stop:
				return
			}
		}
		close(out)
	}()
	return out
}

func enrichStageClosing(in <-chan int, stop <-chan struct{}) <-chan enrichedOrder {
	out := make(chan enrichedOrder)
	go func() {
		defer close(out)
		for id := range in {
			select {
			case out <- enrichedOrder{id, id * 100}:
			case <-stop:
				return
			}
		}
	}()
	return out
}

func runEnrich(t *testing.T, stage func(<-chan int, <-chan struct{}) <-chan enrichedOrder) {
	var wg sync.WaitGroup
	stop := make(chan struct{})
	out := stage(enrichFeed(3, stop, &wg), stop)
	wg.Add(1)
	go func() {
		defer wg.Done()
		close(stop) // the operator asks for a stop at any time
	}()
	last := 0
	for o := range out {
		if o.id != last+1 || o.price != o.id*100 {
			t.Errorf("order %+v after order %d", o, last)
		}
		last = o.id
	}
	wg.Wait()
}

func TestBugEnrichStage(t *testing.T) {
	runEnrich(t, enrichStage)
}

func TestFixedEnrichStage(t *testing.T) {
	runEnrich(t, enrichStageClosing)
}
