//go:build corpus

package b

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
)

// A hub sends every message to all its clients. Each client has a writer that takes messages from a channel with room
// for one. A client that says LEAVE ends its writer first and tells the hub afterwards. If two more messages come
// between these steps, the hub waits for room in the channel of the leaving client, this client waits for the hub, and
// no client gets a message any more.
//
// Class: channel
// Expect: deadlock
type hubClient struct {
	conn net.Conn
	send chan string
	quit chan struct{}
}

type hubServer struct {
	ln          net.Listener
	join, leave chan *hubClient
	say         chan string
	stop        chan struct{}
	wg          sync.WaitGroup
	push        func(c *hubClient, msg string)
}

func hubPush(c *hubClient, msg string) {
	c.send <- msg
}

func hubPushFixed(c *hubClient, msg string) {
	select {
	case c.send <- msg:
	case <-c.quit:
	}
}

func (h *hubServer) run() {
	var clients []*hubClient
	for {
		select {
		case c := <-h.join:
			clients = append(clients, c)
		case c := <-h.leave:
			clients = slices.DeleteFunc(clients, func(d *hubClient) bool { return c == d })
			c.conn.Close()
		case msg := <-h.say:
			for _, c := range clients {
				h.push(c, msg)
			}
		case <-h.stop:
			return
		}
	}
}

func (h *hubServer) accept() {
	for {
		conn, err := h.ln.Accept()
		if err != nil {
			return
		}
		c := &hubClient{conn: conn, send: make(chan string, 1), quit: make(chan struct{})}
		h.wg.Go(func() { h.serve(c) })
	}
}

func (h *hubServer) serve(c *hubClient) {
	h.join <- c
	fmt.Fprintln(c.conn, "WELCOME")
	h.wg.Go(c.write)
	lines := bufio.NewScanner(c.conn)
	for lines.Scan() && lines.Text() != "LEAVE" {
		h.say <- lines.Text()
	}
	close(c.quit)
	h.leave <- c
}

func (c *hubClient) write() {
	for {
		select {
		case msg := <-c.send:
			fmt.Fprintln(c.conn, msg)
		case <-c.quit:
			return
		}
	}
}

// hubDial joins the hub and returns a reader of its messages.
func hubDial(t *testing.T, h *hubServer) (net.Conn, *bufio.Reader) {
	conn, err := net.Dial("tcp", h.ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	if line, err := r.ReadString('\n'); line != "WELCOME\n" {
		t.Errorf("welcome %q, %v", line, err)
	}
	return conn, r
}

func hubRun(t *testing.T, push func(c *hubClient, msg string)) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &hubServer{ln: ln, join: make(chan *hubClient), leave: make(chan *hubClient), say: make(chan string),
		stop: make(chan struct{}), push: push}
	var hub, clients sync.WaitGroup
	hub.Go(h.run)
	h.wg.Go(h.accept)

	speaker, heard := hubDial(t, h)
	listener, r := hubDial(t, h)
	clients.Go(func() { // hears one message and leaves
		defer listener.Close()
		if line, err := r.ReadString('\n'); line != "msg 0\n" {
			t.Errorf("listener got %q, %v", line, err)
		}
		fmt.Fprintln(listener, "LEAVE")
		io.Copy(io.Discard, r)
	})
	for i := range 4 {
		fmt.Fprintf(speaker, "msg %d\n", i)
		if line, err := heard.ReadString('\n'); line != fmt.Sprintf("msg %d\n", i) {
			t.Errorf("speaker got %q, %v", line, err)
		}
	}
	clients.Wait()
	fmt.Fprintln(speaker, "LEAVE")
	io.Copy(io.Discard, heard)
	speaker.Close()
	ln.Close()
	h.wg.Wait()
	close(h.stop)
	hub.Wait()
}

func TestBugHubSlowClient(t *testing.T) {
	hubRun(t, hubPush)
}

func TestFixedHubSlowClient(t *testing.T) {
	hubRun(t, hubPushFixed)
}
