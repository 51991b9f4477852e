package shm

import (
	"sync"
	"testing"
	"unsafe"
)

// heapArea returns an area on the heap.
func heapArea(count int) area {
	mem := make([]entry, (areaLen(count)+entryLen-1)/entryLen) // aligned, also on 32-bit systems
	return areaIn(unsafe.Slice((*byte)(unsafe.Pointer(&mem[0])), len(mem)*entryLen), count)
}

// rings returns the views of the two sides.
func rings(count int) (a, b *ring) {
	one, two := heapArea(count), heapArea(count)
	return &ring{own: one, peer: two, count: count}, &ring{own: two, peer: one, count: count}
}

// No wake-up is lost: a sleeping side is woken by the push for which it waits, or by an early one. Each announcement
// causes at most one wake-up.
//
// `make coirtest` runs this test in all orders of its memory accesses. A lost wake-up would be a deadlock.
func TestExploreWaking(t *testing.T) { exploreWaking(t, 1) }

func TestExploreWakingForTwo(t *testing.T) { exploreWaking(t, 2) }

// exploreWaking passes entries to a side that sleeps until there are at least some entries. The last entry is pushed
// early.
func exploreWaking(t *testing.T, some uint64) {
	const n = 3
	from, to := rings(n)
	bell := make(chan struct{}, n) // stands for the socket
	woken := make(chan int, 1)
	go func() {
		wakes := 0
		for i := range n {
			if from.push(part{slot: uint32(i), off: uint32(i), len: 1}, i == n-1) {
				wakes++
				bell <- struct{}{}
			}
		}
		woken <- wakes
	}()
	for i := 0; i < n; {
		p, ok, err := to.pop()
		switch {
		case err != nil:
			t.Fatal(err)
		case ok:
			if want := (part{uint32(i), uint32(i), 1}); p != want {
				t.Fatalf("popped %v, want %v", p, want)
			}
			i++
		case to.announce(some):
			<-bell
		}
	}
	if wakes := <-woken; uint64(wakes) > to.sleep {
		t.Errorf("%d wake-ups for %d announcements", wakes, to.sleep)
	}
}

// A receiver that finds an entry just before it sleeps does not take the wake-up of another receiver that is already
// asleep. The next push wakes the other one, even if the first never returns.
func TestExploreWakingTwoReceivers(t *testing.T) { exploreTwo(t, 1) }

// The same with two senders, which wait for more than one buffer. The last buffer is returned early.
func TestExploreWakingTwoSenders(t *testing.T) { exploreTwo(t, 2) }

// exploreTwo passes an entry to each of two sleepers on the same side, which sleep until there are at least some
// entries.
func exploreTwo(t *testing.T, some uint64) {
	const n = 2
	from, to := rings(n)
	var mu sync.Mutex // the lock of the end
	rung := sync.NewCond(&mu)
	var received [n]part
	var done sync.WaitGroup
	for i := range n {
		done.Go(func() {
			mu.Lock()
			defer mu.Unlock()
			for {
				p, ok, err := to.pop()
				switch {
				case err != nil:
					t.Error(err)
					return
				case ok:
					received[i] = p
					return
				case to.announce(some):
					rung.Wait()
				}
			}
		})
	}
	for i := range uint32(n) {
		if from.push(part{slot: i}, some > 1 && i == n-1) {
			mu.Lock()
			rung.Broadcast()
			mu.Unlock()
		}
	}
	done.Wait()
	if received[0].slot == received[1].slot {
		t.Errorf("both have received %v", received[0])
	}
}
