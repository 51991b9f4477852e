//go:build corpus

package later

// An allocator lends three devices to jobs that need two each, and takes them in the order in which the job names
// them. Any two of the three jobs get along, since they share one device only. When all three have got their first
// device, each waits for the next one's and none goes on.
//
// Class: abba
// Expect: deadlock

import (
	"slices"
	"sync"
	"testing"
)

const (
	dineScanner = iota
	dinePlotter
	dineTape
	dineDevices
)

type dineDevice struct {
	mu   sync.Mutex
	uses int
}

type dineAllocator struct {
	devices [dineDevices]dineDevice
}

// acquire takes the wanted devices one after the other.
func (a *dineAllocator) acquire(wanted []int) {
	for _, d := range wanted {
		a.devices[d].mu.Lock()
	}
}

// acquireFixed takes them in the order of their numbers, whatever the job says.
func (a *dineAllocator) acquireFixed(wanted []int) {
	a.acquire(slices.Sorted(slices.Values(wanted)))
}

func (a *dineAllocator) release(wanted []int) {
	for _, d := range wanted {
		a.devices[d].mu.Unlock()
	}
}

func dineJobs(t *testing.T, a *dineAllocator, acquire func([]int)) {
	jobs := [][]int{
		{dineScanner, dinePlotter}, // copy
		{dinePlotter, dineTape},    // print an archive, keep a record
		{dineTape, dineScanner},    // archive
	}
	var wg sync.WaitGroup
	for _, wanted := range jobs {
		wg.Add(1)
		go func() {
			defer wg.Done()
			acquire(wanted)
			for _, d := range wanted {
				a.devices[d].uses++
			}
			a.release(wanted)
		}()
	}
	wg.Wait()
	for d := range a.devices {
		if uses := a.devices[d].uses; uses != 2 {
			t.Errorf("device %d used %d times, want 2", d, uses)
		}
	}
}

func TestBugThreeDevices(t *testing.T) {
	a := &dineAllocator{}
	dineJobs(t, a, a.acquire)
}

func TestFixedThreeDevices(t *testing.T) {
	a := &dineAllocator{}
	dineJobs(t, a, a.acquireFixed)
}
