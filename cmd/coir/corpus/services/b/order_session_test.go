//go:build corpus

package b

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// A ticker service over TLS keeps a session for each connection, with a buffered writer that goes away when the
// connection ends. To send, it looks the session up under the lock of the table, and then takes the lock of the
// session and writes. If the client hangs up between these two steps, the writer is gone and the server panics.
//
// Class: order
// Expect: panic
type tickSession struct {
	mu  sync.Mutex
	out *bufio.Writer // nil after the end
}

type tickServer struct {
	ln   net.Listener
	wg   sync.WaitGroup
	send func(s *tickSession, msg string)

	mu       sync.Mutex
	sessions map[string]*tickSession
}

func (s *tickServer) set(name string, sess *tickSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sess == nil {
		delete(s.sessions, name)
	} else {
		s.sessions[name] = sess
	}
}

func (s *tickServer) get(name string) *tickSession {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[name]
}

// push sends a message to a client if it is there.
func (s *tickServer) push(name, msg string) {
	if sess := s.get(name); sess != nil {
		s.send(sess, msg)
	}
}

func tickSend(sess *tickSession, msg string) {
	sess.mu.Lock()
	defer sess.mu.Unlock()
	fmt.Fprintln(sess.out, msg)
	sess.out.Flush()
}

func tickSendFixed(sess *tickSession, msg string) {
	sess.mu.Lock()
	defer sess.mu.Unlock()
	if sess.out == nil {
		return
	}
	fmt.Fprintln(sess.out, msg)
	sess.out.Flush()
}

func (s *tickServer) accept() {
	for {
		conn, err := s.ln.Accept()
		if err != nil {
			return
		}
		s.wg.Go(func() { s.serve(conn) })
	}
}

func (s *tickServer) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewScanner(conn)
	if !in.Scan() {
		return
	}
	name := in.Text()
	sess := &tickSession{out: bufio.NewWriter(conn)}
	s.set(name, sess)
	tickSend(sess, "WELCOME")
	for in.Scan() && in.Text() != "BYE" {
	}
	sess.mu.Lock()
	sess.out = nil
	sess.mu.Unlock()
	s.set(name, nil)
}

// tickConfigs returns the certificate of package httptest for a server and a client that trusts it.
func tickConfigs() (server, client *tls.Config) {
	srv := httptest.NewTLSServer(nil)
	defer srv.Close()
	client = srv.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	return &tls.Config{Certificates: srv.TLS.Certificates}, client
}

func tickRun(t *testing.T, send func(s *tickSession, msg string)) {
	serverConfig, clientConfig := tickConfigs()
	ln, err := tls.Listen("tcp", "127.0.0.1:0", serverConfig)
	if err != nil {
		t.Fatal(err)
	}
	s := &tickServer{ln: ln, send: send, sessions: map[string]*tickSession{}}
	s.wg.Go(s.accept)
	conn, err := tls.Dial("tcp", ln.Addr().String(), clientConfig)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(conn, "ann")
	in := bufio.NewReader(conn)
	if line, err := in.ReadString('\n'); line != "WELCOME\n" {
		t.Errorf("welcome %q, %v", line, err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { // hears one message and hangs up
		defer conn.Close()
		if line, err := in.ReadString('\n'); line != "tick 0\n" {
			t.Errorf("message %q, %v", line, err)
		}
		fmt.Fprintln(conn, "BYE")
		io.Copy(io.Discard, in)
	})
	for i := range 3 {
		s.push("ann", fmt.Sprint("tick ", i))
	}
	wg.Wait()
	ln.Close()
	s.wg.Wait()
}

func TestBugSessionClose(t *testing.T) { tickRun(t, tickSend) }

func TestFixedSessionClose(t *testing.T) { tickRun(t, tickSendFixed) }
