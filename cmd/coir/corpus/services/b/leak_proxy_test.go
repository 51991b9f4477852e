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

// A TCP proxy copies both directions of a connection with one goroutine each. A copier hands on the end of its stream
// and then reports to the connection's handler over a channel without a buffer. The handler waits for both reports
// or for the end of the proxy, whichever comes first. If the proxy is stopped after the client has seen the end of
// its stream and before the last copier has reported, the handler is gone and that copier waits for ever.
//
// Class: leak
// Expect: leak
type proxyConn interface {
	net.Conn
	CloseWrite() error
}

type proxyServer struct {
	ln      net.Listener
	backend string
	quit    chan struct{}
	wg      sync.WaitGroup
	pipe    func(p *proxyServer, client, backend proxyConn)
}

func (p *proxyServer) serve() {
	defer p.wg.Done()
	for {
		conn, err := p.ln.Accept()
		if err != nil {
			return
		}
		p.wg.Add(1)
		go func() {
			defer p.wg.Done()
			defer conn.Close()
			backend, err := net.Dial("tcp", p.backend)
			if err != nil {
				return
			}
			defer backend.Close()
			p.pipe(p, conn.(proxyConn), backend.(proxyConn))
		}()
	}
}

func (p *proxyServer) stop() {
	close(p.quit)
	p.ln.Close()
	p.wg.Wait()
}

func proxyCopy(dst, src proxyConn, report chan<- error) {
	_, err := io.Copy(dst, src)
	dst.CloseWrite()
	report <- err
}

func proxyPipe(p *proxyServer, client, backend proxyConn) {
	report := make(chan error)
	go proxyCopy(backend, client, report)
	go proxyCopy(client, backend, report)
	for range 2 {
		select {
		case <-report:
		case <-p.quit:
			return
		}
	}
}

// proxyPipeFixed closes both connections at the end of the proxy and waits for the copiers all the same.
func proxyPipeFixed(p *proxyServer, client, backend proxyConn) {
	report := make(chan error, 2)
	go proxyCopy(backend, client, report)
	go proxyCopy(client, backend, report)
	quit := p.quit
	for reports := 0; reports < 2; {
		select {
		case <-report:
			reports++
		case <-quit:
			client.Close()
			backend.Close()
			quit = nil
		}
	}
}

// proxyBackend answers each line in capitals.
func proxyBackend(ln net.Listener) {
	conn, err := ln.Accept()
	if err != nil {
		return
	}
	defer conn.Close()
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		fmt.Fprintln(conn, strings.ToUpper(lines.Text()))
	}
}

func proxyRun(t *testing.T, pipe func(p *proxyServer, client, backend proxyConn)) {
	backend, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer backend.Close()
	front, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxyServer{ln: front, backend: backend.Addr().String(), quit: make(chan struct{}), pipe: pipe}
	var wg sync.WaitGroup
	wg.Go(func() { proxyBackend(backend) })
	p.wg.Add(1)
	go p.serve()

	conn, err := net.Dial("tcp", front.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(conn, "hello")
	conn.(proxyConn).CloseWrite()
	answer, err := io.ReadAll(conn)
	if err != nil || string(answer) != "HELLO\n" {
		t.Errorf("answer %q, %v", answer, err)
	}
	conn.Close()
	p.stop()
	wg.Wait()
}

func TestBugProxyCopiers(t *testing.T) {
	proxyRun(t, proxyPipe)
}

func TestFixedProxyCopiers(t *testing.T) {
	proxyRun(t, proxyPipeFixed)
}
