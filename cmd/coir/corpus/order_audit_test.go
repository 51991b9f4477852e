//go:build corpus

package corpus

import (
	"sync"
	"testing"
)

// Workers deliver results and note each in an audit log. The log is closed once all results have come in. A worker
// notes a result after it has delivered it, so the last note can meet a closed log.
//
// Class: order
// Expect: fail

type auditLog struct {
	mu     sync.Mutex
	closed bool
	notes  int
	lost   int
}

func (a *auditLog) note() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		a.lost++
		return
	}
	a.notes++
}

func (a *auditLog) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
}

func auditWorker(a *auditLog, n int, results chan<- int) {
	square := n * n
	results <- square
	a.note()
}

func auditWorkerFixed(a *auditLog, n int, results chan<- int) {
	square := n * n
	a.note()
	results <- square
}

func runAudit(t *testing.T, work func(*auditLog, int, chan<- int)) {
	const jobs = 2
	a := &auditLog{}
	results := make(chan int)
	var wg sync.WaitGroup
	for n := 1; n <= jobs; n++ {
		wg.Go(func() { work(a, n, results) })
	}
	sum := 0
	for range jobs {
		sum += <-results
	}
	a.close()
	wg.Wait()
	if sum != 5 || a.lost != 0 {
		t.Errorf("sum %d, %d notes, %d lost", sum, a.notes, a.lost)
	}
}

func TestBugAudit(t *testing.T) {
	runAudit(t, auditWorker)
}

func TestFixedAudit(t *testing.T) {
	runAudit(t, auditWorkerFixed)
}
