package channel

// LockAll locks the channels in the order of their numbers, so that two callers never wait for each other's locks. It
// sorts the list. A channel may be in the list more than once.
//
//go:norace
func LockAll(cores []*Core) {
	// Spec: SE-12 (channel locks are taken in the order of ids)
	// Spec: SE-20 (up to 8 cases lock without allocating)
	if len(cores) > 16 {
		heapSort(cores)
	}
	for i := 1; i < len(cores); i++ { // if the list is sorted, this is one comparison each
		c := cores[i]
		j := i
		for j > 0 && cores[j-1].id > c.id {
			cores[j] = cores[j-1]
			j--
		}
		cores[j] = c
	}
	var last *Core
	for _, c := range cores {
		if c != last {
			c.Lock()
			last = c
		}
	}
}

// UnlockAll unlocks the channels that LockAll locked, and clears the list, so that it keeps no channel alive.
//
//go:norace
func UnlockAll(cores []*Core) {
	var last *Core
	for i, c := range cores {
		if c != last {
			c.Unlock()
			last = c
		}
		cores[i] = nil
	}
}

// heapSort sorts many channels by number. It does not use package slices: the list passes between goroutines, and the
// race detector would see the accesses of package slices, but not what orders them.
//
//go:norace
func heapSort(cores []*Core) {
	n := len(cores)
	for i := n/2 - 1; i >= 0; i-- {
		sift(cores, i)
	}
	for ; n > 1; n-- {
		cores[0], cores[n-1] = cores[n-1], cores[0]
		sift(cores[:n-1], 0)
	}
}

// sift moves the channel at i down to where it belongs in a heap whose largest number is on top.
//
//go:norace
func sift(cores []*Core, i int) {
	for {
		child := 2*i + 1
		if child >= len(cores) {
			return
		}
		if child+1 < len(cores) && cores[child].id < cores[child+1].id {
			child++
		}
		if cores[i].id >= cores[child].id {
			return
		}
		cores[i], cores[child] = cores[child], cores[i]
		i = child
	}
}
