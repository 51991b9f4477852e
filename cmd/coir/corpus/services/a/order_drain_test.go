//go:build corpus

package a

import (
	"bufio"
	"fmt"
	"net"
	"sync"
	"testing"
)

// A log collector takes lines over TCP, answers ok to each and keeps them in a batch. On the command drain it writes
// the batch to the store for the last time and refuses every later line. The collector asks whether it is draining
// before it puts the line into the batch. A line that passes the question before the drain and reaches the batch
// after it is answered ok and never stored.
//
// Class: order
// Expect: fail
type drainCollector struct {
	ln    net.Listener
	tasks sync.WaitGroup
	put   func(line string) bool

	mu       sync.Mutex
	draining bool
	batch    []string
	stored   []string
}

func newDrainCollector(t *testing.T) *drainCollector {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return &drainCollector{ln: ln}
}

func (c *drainCollector) serve() {
	for {
		conn, err := c.ln.Accept()
		if err != nil {
			return
		}
		c.tasks.Go(func() { c.handle(conn) })
	}
}

func (c *drainCollector) handle(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewScanner(conn)
	for in.Scan() {
		switch {
		case in.Text() == "drain":
			c.drain()
			fmt.Fprintln(conn, "drained")
		case c.put(in.Text()):
			fmt.Fprintln(conn, "ok")
		default:
			fmt.Fprintln(conn, "closing")
		}
	}
}

func (c *drainCollector) open() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.draining
}

func (c *drainCollector) putChecked(line string) bool {
	if !c.open() {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.batch = append(c.batch, line)
	return true
}

func (c *drainCollector) putOnce(line string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.draining {
		return false
	}
	c.batch = append(c.batch, line)
	return true
}

func (c *drainCollector) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draining = true
	c.stored = append(c.stored, c.batch...)
	c.batch = nil
}

// drainSend sends the lines one after the other and returns how many were answered with want.
func drainSend(t *testing.T, addr, want string, lines ...string) int {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer conn.Close()
	in := bufio.NewScanner(conn)
	n := 0
	for _, line := range lines {
		fmt.Fprintln(conn, line)
		if in.Scan() && in.Text() == want {
			n++
		}
	}
	return n
}

func drainScene(t *testing.T, c *drainCollector) {
	c.tasks.Go(c.serve)
	addr := c.ln.Addr().String()
	var wg sync.WaitGroup
	acked := 0
	wg.Go(func() { acked = drainSend(t, addr, "ok", "start", "login", "logout") })
	wg.Go(func() {
		if drainSend(t, addr, "drained", "drain") != 1 {
			t.Error("not drained")
		}
	})
	wg.Wait()
	c.ln.Close()
	c.tasks.Wait()
	if acked != len(c.stored) {
		t.Errorf("%d lines were answered ok and %d are stored", acked, len(c.stored))
	}
}

func TestBugDrain(t *testing.T) {
	c := newDrainCollector(t)
	c.put = c.putChecked
	drainScene(t, c)
}

func TestFixedDrain(t *testing.T) {
	c := newDrainCollector(t)
	c.put = c.putOnce
	drainScene(t, c)
}
