//go:build corpus

package a

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
)

// A client sends several requests over one TCP connection, each with a number, and the server answers them in any
// order. A call takes the lowest free number. A call that is cancelled frees its number at once. If the answer is
// still on its way, and the next call takes the same number before it comes, the next call gets the answer of the
// cancelled one.
//
// Class: select
// Expect: fail
type lateReplyClient struct {
	conn net.Conn
	keep bool // keep the number of a cancelled call until its answer has come

	mu      sync.Mutex
	pending map[int]chan string
}

func (c *lateReplyClient) call(ctx context.Context, text string) (string, error) {
	answer := make(chan string, 1)
	c.mu.Lock()
	id := 1
	for c.pending[id] != nil {
		id++
	}
	c.pending[id] = answer
	_, err := fmt.Fprintf(c.conn, "%d %s\n", id, text)
	c.mu.Unlock()
	if err != nil {
		return "", err
	}
	select {
	case s := <-answer:
		return s, nil
	case <-ctx.Done():
		c.forget(id, answer)
		return "", ctx.Err()
	}
}

func (c *lateReplyClient) forget(id int, answer chan string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.keep && c.pending[id] == answer {
		delete(c.pending, id)
	}
}

func (c *lateReplyClient) read() {
	in := bufio.NewScanner(c.conn)
	for in.Scan() {
		var id int
		number, text, _ := strings.Cut(in.Text(), " ")
		fmt.Sscan(number, &id)
		c.mu.Lock()
		if answer := c.pending[id]; answer != nil {
			delete(c.pending, id)
			answer <- text
		}
		c.mu.Unlock()
	}
}

// lateReplyServe serves one connection, each request on its own goroutine, until the client closes it.
func lateReplyServe(ln net.Listener) {
	conn, err := ln.Accept()
	if err != nil {
		return
	}
	defer conn.Close()
	var tasks sync.WaitGroup
	defer tasks.Wait()
	in := bufio.NewScanner(conn)
	for in.Scan() {
		id, text, _ := strings.Cut(in.Text(), " ")
		tasks.Go(func() { fmt.Fprintf(conn, "%s the %s\n", id, text) })
	}
}

func lateReplyScene(t *testing.T, keep bool) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	var tasks sync.WaitGroup
	tasks.Go(func() { lateReplyServe(ln) })
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c := &lateReplyClient{conn: conn, keep: keep, pending: map[int]chan string{}}
	tasks.Go(c.read)

	expect := func(ctx context.Context, text string) {
		if got, err := c.call(ctx, text); got != "the "+text && err != context.Canceled {
			t.Errorf("asked for the %s, got %q, %v", text, got, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { expect(ctx, "forecast") })
	expect(context.Background(), "time")
	expect(context.Background(), "date")
	cancel() // the user leaves the page of the forecast
	wg.Wait()
	expect(context.Background(), "balance")
	conn.Close()
	tasks.Wait()
}

func TestBugLateReply(t *testing.T) { lateReplyScene(t, false) }

func TestFixedLateReply(t *testing.T) { lateReplyScene(t, true) }
