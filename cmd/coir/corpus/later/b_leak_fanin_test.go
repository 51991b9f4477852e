//go:build corpus

package later

// Two workers take parts of a job from a list and send their results to an aggregator, which gives up at the first
// error. A worker looks whether the aggregator has given up before it sends, but not while it sends. One that has
// looked just before the error arrives sends to a channel that is no longer read.
//
// Class: leak
// Expect: leak

import (
	"errors"
	"sync"
	"testing"
)

type fanaResult struct {
	value int
	err   error
}

var errFanaPart = errors.New("part is damaged")

// fanaCompute fails for the last part only.
func fanaCompute(part, parts int) fanaResult {
	if part == parts-1 {
		return fanaResult{err: errFanaPart}
	}
	return fanaResult{value: part * part}
}

func fanaList(parts int) <-chan int {
	list := make(chan int, parts)
	for p := range parts {
		list <- p
	}
	close(list)
	return list
}

func fanaCollect(results <-chan fanaResult, parts int) (int, error) {
	sum := 0
	for range parts {
		r := <-results
		if r.err != nil {
			return 0, r.err
		}
		sum += r.value
	}
	return sum, nil
}

func fanaSum(workers, parts int) (int, error) {
	list, results, quit := fanaList(parts), make(chan fanaResult), make(chan struct{})
	defer close(quit)
	for range workers {
		go func() {
			for p := range list {
				r := fanaCompute(p, parts)
				select {
				case <-quit:
					return
				default:
					results <- r
				}
			}
		}()
	}
	return fanaCollect(results, parts)
}

// fanaSumFixed gives up a send when the aggregator is gone, and returns when its workers have returned.
func fanaSumFixed(workers, parts int) (int, error) {
	list, results, quit := fanaList(parts), make(chan fanaResult), make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(quit)
	for range workers {
		wg.Go(func() {
			for p := range list {
				select {
				case <-quit:
					return
				case results <- fanaCompute(p, parts):
				}
			}
		})
	}
	return fanaCollect(results, parts)
}

func TestBugFanInFirstError(t *testing.T) {
	if _, err := fanaSum(2, 4); err != errFanaPart {
		t.Errorf("got error %v", err)
	}
}

func TestFixedFanInFirstError(t *testing.T) {
	if _, err := fanaSumFixed(2, 4); err != errFanaPart {
		t.Errorf("got error %v", err)
	}
}
