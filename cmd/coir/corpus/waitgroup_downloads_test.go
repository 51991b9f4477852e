//go:build corpus

package corpus

import (
	"sync"
	"testing"
)

// A download manager waits for its pending downloads. A download that ends checks that it is pending, saves its file
// and calls Done. An abort calls Done for all that are pending. If the abort comes between the check and Done, the
// download is counted twice and the counter of the wait group goes below zero.
//
// Class: waitgroup
// Expect: panic

type downloadManager struct {
	wg      sync.WaitGroup
	mu      sync.Mutex
	pending map[int]bool
	saved   int
}

func (d *downloadManager) add(id int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pending[id] = true
	d.wg.Add(1)
}

func (d *downloadManager) isPending(id int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pending[id]
}

func (d *downloadManager) save(id int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.saved++
	delete(d.pending, id)
}

func (d *downloadManager) complete(id int) {
	if !d.isPending(id) {
		return
	}
	d.save(id)
	d.wg.Done()
}

func (d *downloadManager) completeFixed(id int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.pending[id] {
		return
	}
	d.saved++
	delete(d.pending, id)
	d.wg.Done()
}

func (d *downloadManager) abort() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for range d.pending {
		d.wg.Done()
	}
	clear(d.pending)
}

func runDownloadManager(t *testing.T, complete func(*downloadManager, int)) {
	d := &downloadManager{pending: make(map[int]bool)}
	d.add(1)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		complete(d, 1)
	}()
	d.abort()
	d.wg.Wait()
	<-finished
	if d.saved > 1 || len(d.pending) != 0 {
		t.Errorf("%d saved, %d pending", d.saved, len(d.pending))
	}
}

func TestBugDownloads(t *testing.T) {
	runDownloadManager(t, (*downloadManager).complete)
}

func TestFixedDownloads(t *testing.T) {
	runDownloadManager(t, (*downloadManager).completeFixed)
}
