//go:build corpus

package b

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"
)

// A queue gives a job to a worker over TCP. If the worker is not done within a second, the queue takes the worker for
// dead and gives the job out once more, for the last time. The workers share a press, which a cleaner takes for two
// seconds when the first job has been taken. If the cleaner has the press before the worker, the worker is late, a
// second one prints the same job, and the queue counts both.
//
// Class: select
// Expect: fail
type jobQueue struct {
	ln       net.Listener
	wg       sync.WaitGroup
	strict   bool     // take the result of the latest delivery only
	ready    chan int // the numbers of the deliveries to make
	finished chan struct{}

	mu      sync.Mutex
	latest  int // the delivery that counts
	timer   *time.Timer
	printed int
}

func (q *jobQueue) deliver(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n == 1 {
		q.timer = time.AfterFunc(time.Second, q.expire)
	}
}

func (q *jobQueue) expire() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.printed == 0 {
		q.latest = 2
		q.ready <- 2
	}
}

func (q *jobQueue) done(n int) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.strict && n != q.latest {
		return "STALE"
	}
	q.printed++
	if q.printed == 1 {
		q.timer.Stop()
		close(q.finished)
	}
	return "OK"
}

func (q *jobQueue) accept() {
	for {
		conn, err := q.ln.Accept()
		if err != nil {
			return
		}
		q.wg.Go(func() { q.serve(conn) })
	}
}

func (q *jobQueue) serve(conn net.Conn) {
	defer conn.Close()
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		var n int
		if _, err := fmt.Sscanf(lines.Text(), "DONE %d", &n); err == nil {
			fmt.Fprintln(conn, q.done(n))
			continue
		}
		select {
		case n := <-q.ready:
			q.deliver(n)
			fmt.Fprintf(conn, "JOB %d\n", n)
		case <-q.finished:
			fmt.Fprintln(conn, "END")
		}
	}
}

// jobWorker takes jobs until the queue says that there are no more.
func jobWorker(t *testing.T, addr string, taken, press chan struct{}) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		fmt.Fprintln(conn, "TAKE")
		var n int
		line, err := in.ReadString('\n')
		if _, err := fmt.Sscanf(line, "JOB %d", &n); err != nil {
			return
		}
		taken <- struct{}{}
		press <- struct{}{}
		fmt.Fprintf(conn, "DONE %d\n", n)
		if _, err = in.ReadString('\n'); err != nil {
			t.Error(err)
		}
		<-press
	}
}

func jobRun(t *testing.T, strict bool) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	q := &jobQueue{ln: ln, strict: strict, ready: make(chan int, 2), finished: make(chan struct{}), latest: 1}
	q.ready <- 1
	q.wg.Go(q.accept)
	ctx, cancel := context.WithCancel(t.Context())
	taken, press := make(chan struct{}, 2), make(chan struct{}, 1)
	var workers, cleaner sync.WaitGroup
	cleaner.Go(func() {
		<-taken
		press <- struct{}{}
		select {
		case <-time.After(2 * time.Second):
		case <-ctx.Done():
		}
		<-press
	})
	for range 2 {
		workers.Go(func() { jobWorker(t, ln.Addr().String(), taken, press) })
	}
	workers.Wait()
	cancel()
	cleaner.Wait()
	ln.Close()
	q.wg.Wait()
	if q.printed != 1 {
		t.Errorf("job printed %d times, want 1", q.printed)
	}
}

func TestBugJobQueueTimeout(t *testing.T) { jobRun(t, false) }

func TestFixedJobQueueTimeout(t *testing.T) { jobRun(t, true) }
