//go:build corpus

package a

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
)

// A store takes a file in two parts, over TCP connections of their own. The connection that brings the last missing
// part commits the upload, and a goroutine joins the parts. Keeping a part and asking whether the upload is complete
// are two steps. If both connections keep their part before either asks, both commit the upload, and the second one
// closes a closed channel.
//
// Class: channel
// Expect: panic
type uploadStore struct {
	ln    net.Listener
	tasks sync.WaitGroup
	keep  func(n int, data string) bool

	mu        sync.Mutex
	parts     map[int]string
	committed chan struct{}
	joined    chan struct{}
	file      string
}

func newUploadStore(t *testing.T) *uploadStore {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return &uploadStore{
		ln: ln, parts: map[int]string{}, committed: make(chan struct{}), joined: make(chan struct{}),
	}
}

func (s *uploadStore) serve() {
	for {
		conn, err := s.ln.Accept()
		if err != nil {
			return
		}
		s.tasks.Go(func() { s.handle(conn) })
	}
}

func (s *uploadStore) handle(conn net.Conn) {
	defer conn.Close()
	var n int
	var data string
	if _, err := fmt.Fscanln(conn, &n, &data); err != nil {
		fmt.Fprintln(conn, "error")
		return
	}
	if s.keep(n, data) {
		close(s.committed)
	}
	fmt.Fprintln(conn, "kept")
}

func (s *uploadStore) add(n int, data string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts[n] = data
}

func (s *uploadStore) complete() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.parts) == 2
}

// keepThenAsk keeps a part and asks whether the upload is complete in two steps.
func (s *uploadStore) keepThenAsk(n int, data string) bool {
	s.add(n, data)
	return s.complete()
}

// keepAndAsk does both in one step.
func (s *uploadStore) keepAndAsk(n int, data string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts[n] = data
	return len(s.parts) == 2
}

func (s *uploadStore) join() {
	<-s.committed
	s.mu.Lock()
	defer s.mu.Unlock()
	s.file = s.parts[1] + s.parts[2]
	close(s.joined)
}

func uploadPart(t *testing.T, addr string, n int, data string) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	fmt.Fprintln(conn, n, data)
	if answer, err := bufio.NewReader(conn).ReadString('\n'); err != nil || strings.TrimSpace(answer) != "kept" {
		t.Errorf("part %d: %q, %v", n, answer, err)
	}
}

func uploadScene(t *testing.T, s *uploadStore) {
	s.tasks.Go(s.serve)
	s.tasks.Go(s.join)
	var wg sync.WaitGroup
	wg.Go(func() { uploadPart(t, s.ln.Addr().String(), 1, "left") })
	wg.Go(func() { uploadPart(t, s.ln.Addr().String(), 2, "right") })
	wg.Wait()
	<-s.joined
	s.ln.Close()
	s.tasks.Wait()
	if s.file != "leftright" {
		t.Errorf("the file is %q", s.file)
	}
}

func TestBugUpload(t *testing.T) {
	s := newUploadStore(t)
	s.keep = s.keepThenAsk
	uploadScene(t, s)
}

func TestFixedUpload(t *testing.T) {
	s := newUploadStore(t)
	s.keep = s.keepAndAsk
	uploadScene(t, s)
}
