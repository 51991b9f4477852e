//go:build corpus

package b

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"
)

// An agent reports measurements to a collector over TCP. When its first dial is refused, it tries again in a goroutine
// every five seconds, three times at most, and hands the result over a channel without a buffer. The agent itself waits
// for three seconds, then gives the measurement up and goes on. The result is never received, and the goroutine stays
// for ever. The corrected agent dials again itself until its time is over.
//
// Class: leak
// Expect: leak
// Faults: net
type dialCollector struct {
	ln net.Listener
	wg sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	conns    []net.Conn
	received int
}

func (s *dialCollector) accept() {
	for {
		conn, err := s.ln.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns = append(s.conns, conn)
		if s.closed {
			conn.Close()
		}
		s.mu.Unlock()
		s.wg.Go(func() { s.serve(conn) })
	}
}

func (s *dialCollector) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		if _, err := in.ReadString('\n'); err != nil {
			return
		}
		s.mu.Lock()
		s.received++
		s.mu.Unlock()
		fmt.Fprintln(conn, "OK")
	}
}

func (s *dialCollector) close() {
	s.ln.Close()
	s.mu.Lock()
	s.closed = true
	for _, conn := range s.conns {
		conn.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

type dialResult struct {
	conn net.Conn
	err  error
}

func dialRetry(addr string) (net.Conn, error) {
	conn, err := net.Dial("tcp", addr)
	if err == nil {
		return conn, nil
	}
	result := make(chan dialResult)
	go func() {
		var r dialResult
		for range 3 {
			time.Sleep(5 * time.Second)
			if r.conn, r.err = net.Dial("tcp", addr); r.err == nil {
				break
			}
		}
		result <- r
	}()
	select {
	case r := <-result:
		return r.conn, r.err
	case <-time.After(3 * time.Second):
		return nil, errors.New("collector is down")
	}
}

func dialRetryFixed(addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	var d net.Dialer
	for {
		conn, err := d.DialContext(ctx, "tcp", addr)
		if err == nil {
			return conn, nil
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// dialReport sends one measurement and waits for the OK.
func dialReport(addr, line string, dial func(addr string) (net.Conn, error)) error {
	conn, err := dial(addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := fmt.Fprintln(conn, line); err != nil {
		return err
	}
	_, err = bufio.NewReader(conn).ReadString('\n')
	return err
}

func dialRun(t *testing.T, dial func(addr string) (net.Conn, error)) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &dialCollector{ln: ln}
	s.wg.Go(s.accept)
	acknowledged := 0
	for _, line := range []string{"cpu 3", "disk 4"} {
		if err := dialReport(ln.Addr().String(), line, dial); err == nil {
			acknowledged++
		}
	}
	s.close()
	if s.received < acknowledged {
		t.Errorf("%d received, %d acknowledged", s.received, acknowledged)
	}
}

func TestBugRedialRefused(t *testing.T) { dialRun(t, dialRetry) }

func TestFixedRedialRefused(t *testing.T) { dialRun(t, dialRetryFixed) }
