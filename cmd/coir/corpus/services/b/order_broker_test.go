//go:build corpus

package b

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// A broker sends each message to all who have subscribed before. It answers a subscriber's request and enters the
// subscriber in its list afterwards. A message that is published between these two steps does not reach the
// subscriber, though the subscriber knows that its request was granted.
//
// Class: order
// Expect: fail
type brokerServer struct {
	ln        net.Listener
	wg        sync.WaitGroup
	subscribe func(b *brokerServer, conn net.Conn)

	mu     sync.Mutex
	closed bool
	conns  []net.Conn
	subs   []net.Conn
}

func brokerSubscribe(b *brokerServer, conn net.Conn) {
	fmt.Fprintln(conn, "OK")
	b.mu.Lock()
	defer b.mu.Unlock()
	b.subs = append(b.subs, conn)
}

// brokerSubscribeFixed holds the lock over both steps, so that no message can come before the answer or get lost.
func brokerSubscribeFixed(b *brokerServer, conn net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.subs = append(b.subs, conn)
	fmt.Fprintln(conn, "OK")
}

func (b *brokerServer) publish(msg string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, conn := range b.subs {
		fmt.Fprintln(conn, msg)
	}
}

// track notes the connection, to be closed with the broker.
func (b *brokerServer) track(conn net.Conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conns = append(b.conns, conn)
	return !b.closed
}

func (b *brokerServer) accept() {
	for {
		conn, err := b.ln.Accept()
		if err != nil {
			return
		}
		b.wg.Go(func() { b.serve(conn) })
	}
}

func (b *brokerServer) serve(conn net.Conn) {
	defer conn.Close()
	if !b.track(conn) {
		return
	}
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		if msg, ok := strings.CutPrefix(lines.Text(), "PUB "); ok {
			b.publish(msg)
			fmt.Fprintln(conn, "OK")
		} else {
			b.subscribe(b, conn)
		}
	}
}

func (b *brokerServer) close() {
	b.ln.Close()
	b.mu.Lock()
	b.closed = true
	for _, conn := range b.conns {
		conn.Close()
	}
	b.mu.Unlock()
	b.wg.Wait()
}

// brokerAsk opens a connection, sends a request and waits for the OK.
func brokerAsk(t *testing.T, addr, request string) (net.Conn, *bufio.Reader) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(conn, request)
	r := bufio.NewReader(conn)
	if line, err := r.ReadString('\n'); line != "OK\n" {
		t.Errorf("%s: answer %q, %v", request, line, err)
	}
	return conn, r
}

func brokerRun(t *testing.T, subscribe func(b *brokerServer, conn net.Conn)) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &brokerServer{ln: ln, subscribe: subscribe}
	b.wg.Go(b.accept)
	sub, in := brokerAsk(t, ln.Addr().String(), "SUB")
	pub, _ := brokerAsk(t, ln.Addr().String(), "PUB price 42")
	b.close()
	if got, err := io.ReadAll(in); string(got) != "price 42\n" {
		t.Errorf("subscriber got %q, %v", got, err)
	}
	sub.Close()
	pub.Close()
}

func TestBugBrokerSubscribe(t *testing.T) {
	brokerRun(t, brokerSubscribe)
}

func TestFixedBrokerSubscribe(t *testing.T) {
	brokerRun(t, brokerSubscribeFixed)
}
