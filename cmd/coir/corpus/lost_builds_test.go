//go:build corpus

package corpus

import (
	"sync"
	"testing"
)

// A build board notifies callers that wait for a build when it is finished. A caller asks whether the build is finished
// and then registers its channel. A build that finishes between the two closes the channels registered so far, and not
// the new one.
//
// Class: lost
// Expect: deadlock

type buildBoard struct {
	mu       sync.Mutex
	finished map[int]bool
	waiters  map[int][]chan struct{}
}

func newBuildBoard() *buildBoard {
	return &buildBoard{finished: make(map[int]bool), waiters: make(map[int][]chan struct{})}
}

func (b *buildBoard) finish(id int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.finished[id] = true
	for _, w := range b.waiters[id] {
		close(w)
	}
	delete(b.waiters, id)
}

func (b *buildBoard) isFinished(id int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.finished[id]
}

func (b *buildBoard) register(id int) <-chan struct{} {
	w := make(chan struct{})
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiters[id] = append(b.waiters[id], w)
	return w
}

func (b *buildBoard) registerFixed(id int) <-chan struct{} {
	w := make(chan struct{})
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.finished[id] {
		close(w)
	} else {
		b.waiters[id] = append(b.waiters[id], w)
	}
	return w
}

func (b *buildBoard) wait(id int) {
	if !b.isFinished(id) {
		<-b.register(id)
	}
}

func (b *buildBoard) waitFixed(id int) {
	<-b.registerFixed(id)
}

func runBuildBoard(t *testing.T, wait func(*buildBoard, int)) {
	const id = 7
	b := newBuildBoard()
	var wg sync.WaitGroup
	wg.Go(func() { b.finish(id) })
	wait(b, id)
	if !b.isFinished(id) {
		t.Error("the wait ended before the build")
	}
	wg.Wait()
}

func TestBugBuildBoard(t *testing.T) {
	runBuildBoard(t, (*buildBoard).wait)
}

func TestFixedBuildBoard(t *testing.T) {
	runBuildBoard(t, (*buildBoard).waitFixed)
}
