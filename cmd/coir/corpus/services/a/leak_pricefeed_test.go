//go:build corpus

package a

import (
	"bufio"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// A price feed sends every published price to its subscribers over a unix socket. On the side of the subscriber a
// goroutine reads the lines and hands them over one by one. To stop, the subscriber closes the connection and takes
// no more lines. If the goroutine has read one more line by then, it waits for ever to hand it over.
//
// Class: leak
// Expect: leak
type feedServer struct {
	ln    net.Listener
	tasks sync.WaitGroup

	mu          sync.Mutex
	subscribers []net.Conn
}

func (s *feedServer) serve() {
	for {
		conn, err := s.ln.Accept()
		if err != nil {
			return
		}
		s.tasks.Go(func() { s.handle(conn) })
	}
}

func (s *feedServer) handle(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewScanner(conn)
	for in.Scan() {
		s.mu.Lock()
		if in.Text() == "subscribe" {
			s.subscribers = append(s.subscribers, conn)
		} else {
			for _, sub := range s.subscribers {
				fmt.Fprintln(sub, in.Text())
			}
		}
		fmt.Fprintln(conn, "ok")
		s.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subscribers = slices.DeleteFunc(s.subscribers, func(c net.Conn) bool { return c == conn })
}

type feedSubscriber struct {
	conn  net.Conn
	lines chan string
	quit  chan struct{}
}

// read hands the lines over until the connection is closed.
func (s *feedSubscriber) read() {
	in := bufio.NewScanner(s.conn)
	for in.Scan() {
		s.lines <- in.Text()
	}
}

// readUntilQuit hands the lines over until the connection is closed or the subscriber stops.
func (s *feedSubscriber) readUntilQuit() {
	in := bufio.NewScanner(s.conn)
	for in.Scan() {
		select {
		case s.lines <- in.Text():
		case <-s.quit:
			return
		}
	}
}

func (s *feedSubscriber) stop() {
	close(s.quit)
	s.conn.Close()
}

func feedPublish(t *testing.T, path string, prices ...string) {
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	in := bufio.NewScanner(conn)
	for _, price := range prices {
		fmt.Fprintln(conn, price)
		if !in.Scan() {
			t.Errorf("no answer to %s", price)
		}
	}
}

func feedScene(t *testing.T, read func(*feedSubscriber)) {
	path := filepath.Join(t.TempDir(), "feed")
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	srv := &feedServer{ln: ln}
	srv.tasks.Go(srv.serve)
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	sub := &feedSubscriber{conn: conn, lines: make(chan string), quit: make(chan struct{})}
	go read(sub)
	fmt.Fprintln(conn, "subscribe")
	if got := <-sub.lines; got != "ok" {
		t.Errorf("the subscription was answered with %q", got)
	}
	var wg sync.WaitGroup
	wg.Go(func() { feedPublish(t, path, "gold 100", "gold 101") })
	if got := <-sub.lines; got != "gold 100" {
		t.Errorf("got %q first", got)
	}
	sub.stop()
	wg.Wait()
	ln.Close()
	srv.tasks.Wait()
}

func TestBugPriceFeed(t *testing.T) { feedScene(t, (*feedSubscriber).read) }

func TestFixedPriceFeed(t *testing.T) { feedScene(t, (*feedSubscriber).readUntilQuit) }
