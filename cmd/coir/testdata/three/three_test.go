// Package three holds three bugs in plain Go, for docs/guide/reports.md.
package three

import (
	"sync"
	"testing"
)

func transferBothWays() {
	var a, b sync.Mutex
	var wg sync.WaitGroup
	wg.Add(2)
	go func() {
		defer wg.Done()
		a.Lock()
		defer a.Unlock()
		b.Lock()
		defer b.Unlock()
	}()
	go func() {
		defer wg.Done()
		b.Lock()
		defer b.Unlock()
		a.Lock()
		defer a.Unlock()
	}()
	wg.Wait()
}

type tally struct {
	mu sync.Mutex
	n  int
}

func (t *tally) get() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.n
}

func (t *tally) set(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n = n
}

func countToTwo() int {
	var t tally
	var wg sync.WaitGroup
	wg.Add(2)
	for range 2 {
		go func() {
			defer wg.Done()
			t.set(t.get() + 1)
		}()
	}
	wg.Wait()
	return t.n
}

func countUnlocked() int {
	var n int
	var wg sync.WaitGroup
	wg.Add(2)
	for range 2 {
		go func() {
			defer wg.Done()
			n++
		}()
	}
	wg.Wait()
	return n
}

func answerOrQuit() {
	answer, quit := make(chan int), make(chan struct{})
	var wg sync.WaitGroup
	wg.Add(2)
	go func() {
		defer wg.Done()
		answer <- 42
	}()
	go func() {
		defer wg.Done()
		close(quit)
	}()
	select {
	case <-answer:
	case <-quit:
	}
	wg.Wait()
}

func TestTransfer(*testing.T) { transferBothWays() }

func TestCount(t *testing.T) {
	if n := countToTwo(); n != 2 {
		t.Errorf("counted to %d", n)
	}
}

func TestUnlocked(t *testing.T) {
	if n := countUnlocked(); n != 2 {
		t.Errorf("counted to %d", n)
	}
}

func TestAnswer(*testing.T) { answerOrQuit() }
