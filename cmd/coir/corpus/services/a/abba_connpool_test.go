//go:build corpus

package a

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// A shop keeps a pool of two connections to its database. The order handler takes a connection for the order and,
// while it holds it, takes another one to write the audit line. If two orders come at once and each takes its first
// connection, the pool is empty and both wait for ever for their second.
//
// Class: abba
// Expect: deadlock
type poolShop struct {
	pool    chan *poolConn
	oneConn bool // write the audit line over the connection of the order
}

type poolConn struct {
	conn net.Conn
	in   *bufio.Reader
}

func (c *poolConn) exec(statement string) (string, error) {
	if _, err := fmt.Fprintln(c.conn, statement); err != nil {
		return "", err
	}
	return c.in.ReadString('\n')
}

func (s *poolShop) audit(id string) (string, error) {
	c := <-s.pool
	defer func() { s.pool <- c }()
	return c.exec("audit " + id)
}

func (s *poolShop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get("id")
	c := <-s.pool
	defer func() { s.pool <- c }()
	var err error
	if s.oneConn {
		_, err = c.exec("audit " + id)
	} else {
		_, err = s.audit(id)
	}
	if err == nil {
		_, err = c.exec("insert " + id)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	io.WriteString(w, "ordered")
}

// poolDatabase answers every line of every connection with the line itself, until its listener is closed and the
// connections are.
func poolDatabase(ln net.Listener) {
	var conns sync.WaitGroup
	defer conns.Wait()
	for {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		conns.Go(func() {
			defer conn.Close()
			io.Copy(conn, conn)
		})
	}
}

func poolOrder(t *testing.T, c *http.Client, url string) {
	resp, err := c.Get(url)
	if err != nil {
		t.Error(err)
		return
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "ordered" {
		t.Errorf("got %q, %v", body, err)
	}
}

func poolScene(t *testing.T, oneConn bool) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var database sync.WaitGroup
	database.Go(func() { poolDatabase(ln) })

	shop := &poolShop{pool: make(chan *poolConn, 2), oneConn: oneConn}
	for range cap(shop.pool) {
		conn, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		shop.pool <- &poolConn{conn, bufio.NewReader(conn)}
	}
	srv := httptest.NewServer(shop)
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() { poolOrder(t, srv.Client(), fmt.Sprintf("%s/order?id=%d", srv.URL, i)) })
	}
	wg.Wait()
	srv.Close()
	for range cap(shop.pool) {
		c := <-shop.pool
		c.conn.Close()
	}
	ln.Close()
	database.Wait()
}

func TestBugConnPool(t *testing.T) { poolScene(t, false) }

func TestFixedConnPool(t *testing.T) { poolScene(t, true) }
