//go:build corpus

package b

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
)

// A configuration service lets clients wait for the next edit. A waiting request ends with the edit or when the
// service stops. Stop shuts the HTTP server down and gives the signal to waiting requests afterwards. If it comes
// after a client has begun to wait and before the edit, the edit is refused, the shutdown waits for the request, and
// the request for the signal.
//
// Class: order
// Expect: deadlock
type watchService struct {
	srv     http.Server
	addr    string
	served  sync.WaitGroup
	stopped chan struct{}

	mu      sync.Mutex
	version int
	edited  chan struct{}
}

func (s *watchService) start(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "fine") })
	mux.HandleFunc("GET /watch", s.watch)
	mux.HandleFunc("POST /edit", s.edit)
	s.srv.Handler = mux
	s.addr = "http://" + ln.Addr().String()
	s.stopped = make(chan struct{})
	s.edited = make(chan struct{})
	s.served.Go(func() { s.srv.Serve(ln) })
}

func (s *watchService) watch(w http.ResponseWriter, r *http.Request) {
	select {
	case <-s.edited:
		s.mu.Lock()
		defer s.mu.Unlock()
		fmt.Fprintln(w, s.version)
	case <-s.stopped:
		http.Error(w, "stopped", http.StatusServiceUnavailable)
	}
}

func (s *watchService) edit(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	if s.version == 1 {
		close(s.edited)
	}
}

func (s *watchService) stop() error {
	err := s.srv.Shutdown(context.Background())
	close(s.stopped)
	s.served.Wait()
	return err
}

func (s *watchService) stopFixed() error {
	close(s.stopped)
	err := s.srv.Shutdown(context.Background())
	s.served.Wait()
	return err
}

// watchDo sends requests one after the other over a connection of its own. It returns the status of the last one, or
// the error of the first that fails.
func watchDo(method string, urls ...string) (status int, err error) {
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	for _, url := range urls {
		req, err := http.NewRequest(method, url, nil)
		if err != nil {
			return 0, err
		}
		resp, err := tr.RoundTrip(req)
		if err != nil {
			return 0, err
		}
		status = resp.StatusCode
		resp.Body.Close()
	}
	return status, nil
}

func watchRun(t *testing.T, stop func(s *watchService) error) {
	s := &watchService{}
	s.start(t)
	var wg sync.WaitGroup
	wg.Go(func() { // a watcher: an error means that the service has stopped
		status, err := watchDo("GET", s.addr+"/watch")
		if err == nil && status != http.StatusOK && status != http.StatusServiceUnavailable {
			t.Errorf("watch: status %d", status)
		}
	})
	wg.Go(func() { // an editor: an error means the same
		status, err := watchDo("POST", s.addr+"/edit")
		if err == nil && status != http.StatusOK {
			t.Errorf("edit: status %d", status)
		}
	})
	status := s.addr + "/status"
	if _, err := watchDo("GET", status, status, status, status, status, status); err != nil {
		t.Error(err)
	}
	if err := stop(s); err != nil {
		t.Error(err)
	}
	wg.Wait()
}

func TestBugShutdownSignal(t *testing.T) {
	watchRun(t, (*watchService).stop)
}

func TestFixedShutdownSignal(t *testing.T) {
	watchRun(t, (*watchService).stopFixed)
}
