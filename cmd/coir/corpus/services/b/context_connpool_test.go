//go:build corpus

package b

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// A client of a key-value service keeps its connections in a pool. A request that is cancelled stops waiting for its
// answer and puts the connection back. If the cancel comes after the request was sent and before the answer was
// read, the next user of the connection reads the answer of the cancelled request.
//
// Class: context
// Expect: fail
type kvServer struct {
	ln net.Listener
	wg sync.WaitGroup
}

func (s *kvServer) accept() {
	for {
		conn, err := s.ln.Accept()
		if err != nil {
			return
		}
		s.wg.Go(func() {
			defer conn.Close()
			lines := bufio.NewScanner(conn)
			for lines.Scan() {
				fmt.Fprintf(conn, "value of %s\n", lines.Text())
			}
		})
	}
}

type kvConn struct {
	net.Conn
	in *bufio.Reader
}

type kvPool struct {
	addr   string
	strict bool // close a connection after a cancel or an error

	mu   sync.Mutex
	idle []*kvConn
}

func (p *kvPool) take() (*kvConn, error) {
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		defer p.mu.Unlock()
		c := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return c, nil
	}
	p.mu.Unlock()
	conn, err := net.Dial("unix", p.addr)
	if err != nil {
		return nil, err
	}
	return &kvConn{Conn: conn, in: bufio.NewReader(conn)}, nil
}

func (p *kvPool) put(c *kvConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, c)
}

func (p *kvPool) close() {
	for _, c := range p.idle {
		c.Close()
	}
}

// get asks for a key. A cancel makes the read fail at once.
func (p *kvPool) get(ctx context.Context, key string) (string, error) {
	c, err := p.take()
	if err != nil {
		return "", err
	}
	stop := context.AfterFunc(ctx, func() { c.SetReadDeadline(time.Unix(1, 0)) })
	fmt.Fprintln(c, key)
	line, err := c.in.ReadString('\n')
	cancelled := !stop()
	if p.strict && (cancelled || err != nil) {
		c.Close()
	} else {
		if err != nil {
			c.SetReadDeadline(time.Time{})
		}
		p.put(c)
	}
	return strings.TrimSuffix(line, "\n"), err
}

// kvPage reads a page. Meanwhile it asks whether the user may read it and cancels the request if not.
func kvPage(t *testing.T, pages, rights *kvPool) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() {
		for _, key := range []string{"user", "group", "role", "right"} {
			if _, err := rights.get(t.Context(), key); err != nil {
				t.Error(err)
			}
		}
		cancel() // no right
	})
	if v, err := pages.get(ctx, "page"); err == nil && v != "value of page" {
		t.Errorf("page: %q", v)
	}
	wg.Wait()
}

func kvRun(t *testing.T, strict bool) {
	ln, err := net.Listen("unix", filepath.Join(t.TempDir(), "kv"))
	if err != nil {
		t.Fatal(err)
	}
	s := &kvServer{ln: ln}
	s.wg.Go(s.accept)
	pages := &kvPool{addr: ln.Addr().String(), strict: strict}
	rights := &kvPool{addr: ln.Addr().String(), strict: strict}
	kvPage(t, pages, rights)
	if v, err := pages.get(t.Context(), "start"); v != "value of start" {
		t.Errorf("start: %q, %v", v, err)
	}
	pages.close()
	rights.close()
	ln.Close()
	s.wg.Wait()
}

func TestBugConnPoolCancel(t *testing.T) { kvRun(t, false) }

func TestFixedConnPoolCancel(t *testing.T) { kvRun(t, true) }
