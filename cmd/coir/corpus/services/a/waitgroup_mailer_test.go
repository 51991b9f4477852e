//go:build corpus

package a

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// A signup service accepts a signup at once and writes the welcome mail on another goroutine, which hands it to the
// one goroutine that sends mails. To close, the service waits for the writers and stops the sender. A writer counts
// itself when it begins to run and not in the handler. If the service closes before that, it does not wait for the
// writer, and the writer waits for ever for the sender that has stopped.
//
// Class: waitgroup
// Expect: leak
type mailerService struct {
	countFirst bool // count a writer before it is started

	writers sync.WaitGroup
	outbox  chan string
	quit    chan struct{}
	stopped chan struct{}

	mu   sync.Mutex
	sent []string
}

func newMailerService(countFirst bool) *mailerService {
	s := &mailerService{
		countFirst: countFirst,
		outbox:     make(chan string),
		quit:       make(chan struct{}),
		stopped:    make(chan struct{}),
	}
	go s.send()
	return s
}

func (s *mailerService) send() {
	defer close(s.stopped)
	for {
		select {
		case mail := <-s.outbox:
			s.mu.Lock()
			s.sent = append(s.sent, mail)
			s.mu.Unlock()
		case <-s.quit:
			return
		}
	}
}

func (s *mailerService) write(name string) {
	if !s.countFirst {
		s.writers.Add(1)
	}
	defer s.writers.Done()
	s.outbox <- fmt.Sprintf("Welcome, %s!", name)
}

func (s *mailerService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("name")
	if name == "" {
		http.Error(w, "no name", http.StatusBadRequest)
		return
	}
	if s.countFirst {
		s.writers.Add(1)
	}
	go s.write(name)
	w.WriteHeader(http.StatusAccepted)
}

// close may be called when no more signups come.
func (s *mailerService) close() {
	s.writers.Wait()
	close(s.quit)
	<-s.stopped
}

func mailerSignup(t *testing.T, c *http.Client, url string) {
	resp, err := c.Post(url, "text/plain", nil)
	if err != nil {
		t.Error(err)
		return
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, resp.Body)
	if resp.StatusCode != http.StatusAccepted {
		t.Errorf("signup: %s", resp.Status)
	}
}

func mailerScene(t *testing.T, countFirst bool) {
	s := newMailerService(countFirst)
	srv := httptest.NewServer(s)
	mailerSignup(t, srv.Client(), srv.URL+"/signup?name=ann")
	srv.Close()
	s.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	t.Logf("sent %q", s.sent)
}

func TestBugMailer(t *testing.T) { mailerScene(t, false) }

func TestFixedMailer(t *testing.T) { mailerScene(t, true) }
