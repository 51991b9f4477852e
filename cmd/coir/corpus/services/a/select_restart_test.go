//go:build corpus

package a

import (
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
)

// A job service accepts jobs into the queue of its worker. A restart starts a new worker, sends new jobs there and
// tells the old worker to quit. The old worker waits for a job or for the order to quit. If a job is queued when the
// order comes, the worker may see the order first and quit, and the job is never run.
//
// Class: select
// Expect: fail
type restartService struct {
	handOver bool // give what the old worker has left to the new one

	mu     sync.Mutex
	worker *restartWorker

	ranMu sync.Mutex
	ran   []string
}

type restartWorker struct {
	queue      chan string
	quit, done chan struct{}
}

func (s *restartService) start() *restartWorker {
	w := &restartWorker{queue: make(chan string, 16), quit: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(w.done)
		for {
			select {
			case job := <-w.queue:
				s.run(job)
			case <-w.quit:
				return
			}
		}
	}()
	return w
}

// stop ends a worker and returns the jobs it has left. Its queue must not get more jobs.
func (w *restartWorker) stop() (left []string) {
	close(w.quit)
	<-w.done
	for len(w.queue) > 0 {
		left = append(left, <-w.queue)
	}
	return left
}

func (s *restartService) run(job string) {
	s.ranMu.Lock()
	defer s.ranMu.Unlock()
	s.ran = append(s.ran, job)
}

func (s *restartService) enqueue(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.worker.queue <- r.URL.Query().Get("name")
	w.WriteHeader(http.StatusAccepted)
}

func (s *restartService) restart(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.worker
	s.worker = s.start()
	left := old.stop()
	if s.handOver {
		for _, job := range left {
			s.worker.queue <- job
		}
	}
	w.WriteHeader(http.StatusAccepted)
}

// close ends the service and runs the jobs that are left.
func (s *restartService) close() {
	for _, job := range s.worker.stop() {
		s.run(job)
	}
}

func restartScene(t *testing.T, handOver bool) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &restartService{handOver: handOver}
	s.worker = s.start()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /job", s.enqueue)
	mux.HandleFunc("POST /restart", s.restart)
	srv := &http.Server{Handler: mux}
	var serving, wg sync.WaitGroup
	serving.Go(func() { srv.Serve(ln) })

	transport := &http.Transport{}
	client := &http.Client{Transport: transport}
	post := func(path string) {
		resp, err := client.Post("http://"+ln.Addr().String()+path, "text/plain", nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		io.Copy(io.Discard, resp.Body)
		if resp.StatusCode != http.StatusAccepted {
			t.Errorf("%s: %s", path, resp.Status)
		}
	}
	wg.Go(func() { post("/job?name=resize"); post("/job?name=index") })
	wg.Go(func() { post("/restart") })
	wg.Wait()
	transport.CloseIdleConnections()
	srv.Close()
	serving.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.close()
	if len(s.ran) != 2 {
		t.Errorf("2 jobs were accepted and %d were run: %q", len(s.ran), s.ran)
	}
}

func TestBugRestart(t *testing.T) { restartScene(t, false) }

func TestFixedRestart(t *testing.T) { restartScene(t, true) }
