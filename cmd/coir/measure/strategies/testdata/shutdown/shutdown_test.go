// Package shutdown has small services that go wrong if they are stopped at a bad moment: see command strategies.
package shutdown

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A queue checks whether it is closed before it sends a job. Shutdown may close the channel in between.
type queue struct {
	mu     sync.RWMutex
	closed bool
	jobs   chan int
	wg     sync.WaitGroup
	done   atomic.Int64
}

func newQueue(workers, size int) *queue {
	q := &queue{jobs: make(chan int, size)}
	for range workers {
		q.wg.Go(func() {
			for range q.jobs {
				q.mu.RLock()
				q.done.Add(1)
				q.mu.RUnlock()
			}
		})
	}
	return q
}

func (q *queue) submit(j int) bool {
	q.mu.RLock()
	closed := q.closed
	q.mu.RUnlock()
	if closed {
		return false
	}
	q.jobs <- j
	return true
}

func (q *queue) shutdown() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	close(q.jobs)
	q.wg.Wait()
}

func TestBugSendClosed(t *testing.T) {
	q := newQueue(3, 8)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 3 {
				q.submit(i*10 + j)
			}
		})
	}
	for i := range 6 {
		q.submit(100 + i)
	}
	q.shutdown()
	wg.Wait()
}

// The same queue is stopped when most of the jobs have come.
func TestBugSendClosedLate(t *testing.T) {
	q := newQueue(2, 4)
	var wg sync.WaitGroup
	first := make(chan bool, 8)
	for i := range 3 {
		wg.Go(func() {
			for j := range 4 {
				q.submit(i*10 + j)
				if j < 2 {
					first <- true
				}
			}
		})
	}
	for range 6 {
		<-first
	}
	q.shutdown()
	wg.Wait()
}

// The workers of a server answer the jobs that are queued, and end. The caller of a job that comes later waits forever.
type server struct {
	mu   sync.Mutex
	down bool
	jobs chan chan int
	quit chan bool
	wg   sync.WaitGroup
}

func newServer(workers int) *server {
	s := &server{jobs: make(chan chan int, 4), quit: make(chan bool)}
	for i := range workers {
		s.wg.Go(func() {
			for {
				select {
				case r := <-s.jobs:
					r <- i
				case <-s.quit:
					for {
						select {
						case r := <-s.jobs:
							r <- i
							continue
						default:
						}
						return
					}
				}
			}
		})
	}
	return s
}

func (s *server) call() bool {
	s.mu.Lock()
	down := s.down
	s.mu.Unlock()
	if down {
		return false
	}
	r := make(chan int, 1)
	s.jobs <- r
	<-r
	return true
}

func (s *server) stop() {
	s.mu.Lock()
	s.down = true
	s.mu.Unlock()
	close(s.quit)
	s.wg.Wait()
}

func TestBugQueuedJob(t *testing.T) {
	s := newServer(2)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for range 3 {
				s.call()
			}
		})
	}
	s.call()
	s.stop()
	wg.Wait()
}

// The results of a pipeline are closed when no item is in work. A worker may have taken one that it has not counted.
type pipeline struct {
	in, out chan int
	mu      sync.Mutex
	flying  int
	closing bool
	idle    chan bool
}

func (p *pipeline) work() {
	for v := range p.in {
		p.mu.Lock()
		p.flying++
		p.mu.Unlock()
		p.out <- v * v
		p.mu.Lock()
		p.flying--
		if p.flying == 0 && p.closing && len(p.in) == 0 {
			select {
			case p.idle <- true:
			default:
			}
		}
		p.mu.Unlock()
	}
}

func TestBugCloseBeforeDrain(t *testing.T) {
	p := &pipeline{in: make(chan int, 8), out: make(chan int, 8), idle: make(chan bool, 1)}
	for range 2 {
		go p.work()
	}
	n := 0
	end := make(chan bool)
	go func() {
		defer close(end)
		for range p.out {
			n++
		}
	}()
	for i := range 6 {
		p.in <- i
	}
	p.mu.Lock()
	p.closing = true
	close(p.in)
	if p.flying == 0 && len(p.in) == 0 {
		p.idle <- true
	}
	p.mu.Unlock()
	<-p.idle
	close(p.out)
	<-end
}

// Both ends of a session close it if it is open, and may look at the same time.
type session struct {
	done chan bool
	mu   sync.Mutex
	log  []string
}

func (s *session) note(x string) {
	s.mu.Lock()
	s.log = append(s.log, x)
	s.mu.Unlock()
}

func (s *session) close(who string) {
	s.note(who)
	select {
	case <-s.done:
	default:
		s.note("last words of " + who)
		close(s.done)
	}
	s.note(who + " has closed")
}

func TestBugDoubleClose(t *testing.T) {
	s := &session{done: make(chan bool)}
	in := make(chan int)
	var wg sync.WaitGroup
	wg.Go(func() { // reader
		for v := range in {
			s.note(fmt.Sprint(v))
		}
		s.close("reader")
	})
	wg.Go(func() { // keeper
		for range 3 {
			s.note("alive")
		}
		<-s.done
	})
	for i := range 6 {
		in <- i
	}
	close(in)
	for range 4 {
		s.note("writer")
	}
	s.close("writer")
	wg.Wait()
}

// get gets a page. The server may be closing.
func get(s *httptest.Server, path string) {
	r, err := s.Client().Get(s.URL + path)
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, r.Body)
	_ = r.Body.Close()
}

func TestBugHTTPSendClosed(t *testing.T) {
	q := newQueue(2, 8)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !q.submit(1) {
			http.Error(w, "closing", 503)
			return
		}
		fmt.Fprint(w, "ok")
	}))
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { get(s, "/"); get(s, "/") })
	}
	get(s, "/")
	q.shutdown()
	wg.Wait()
	s.Close()
}

func TestBugHTTPQueuedJob(t *testing.T) {
	v := newServer(1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, v.call()) }))
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { get(s, "/") })
	}
	get(s, "/")
	v.stop()
	wg.Wait()
	s.Close()
}

// The results are closed when all goroutines in the group have ended. One more may be added then.
func TestBugAddAfterWait(t *testing.T) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	stopped := false
	results := make(chan int, 20)
	start := func(i int) {
		mu.Lock()
		s := stopped
		mu.Unlock()
		if s {
			return
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			mu.Lock()
			mu.Unlock()
			results <- i
		}()
	}
	var callers sync.WaitGroup
	for i := range 3 {
		callers.Go(func() {
			for j := range 2 {
				start(i*2 + j)
			}
		})
	}
	start(10)
	start(11)
	mu.Lock()
	stopped = true
	mu.Unlock()
	wg.Wait()
	close(results)
	callers.Wait()
	for range results {
	}
}

// A value may be added to a batch after it was stored for the last time.
func TestBugLastFlush(t *testing.T) {
	var mu sync.Mutex
	var batch, stored []int
	quit, ended := make(chan bool), make(chan bool)
	kick := make(chan bool, 1)
	closed := false
	flush := func() {
		mu.Lock()
		b := batch
		batch = nil
		mu.Unlock()
		mu.Lock()
		stored = append(stored, b...)
		mu.Unlock()
	}
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-kick:
				flush()
			case <-tick.C:
				flush()
			case <-quit:
				flush()
				return
			}
		}
	}()
	var accepted atomic.Int64
	add := func(v int) {
		mu.Lock()
		c := closed
		mu.Unlock()
		if c {
			return
		}
		mu.Lock()
		batch = append(batch, v)
		accepted.Add(1)
		mu.Unlock()
		select {
		case kick <- true:
		default:
		}
	}
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			for j := range 3 {
				add(i*3 + j)
			}
		})
	}
	add(9)
	mu.Lock()
	closed = true
	mu.Unlock()
	close(quit)
	<-ended
	wg.Wait()
	if int(accepted.Load()) != len(stored) {
		t.Errorf("accepted %d, stored %d", accepted.Load(), len(stored))
	}
}
