//go:build unix

package nats_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/nats"
	"github.com/coir-go/coir/remote/transporttest"
)

// No wait outlasts its context, even over a network that passes nothing on. The ping interval is long, so the client
// does not notice.
func TestSilentBroker(t *testing.T) {
	transporttest.RunSilent(t, func(t testing.TB) (_ remote.Transport, silence func()) {
		p := newProxy(t, strings.TrimPrefix(single(t, false).ClientURL(), "nats://"))
		nc, err := client.Connect(p.addr(), client.PingInterval(time.Hour), client.UserInfo("app", "app"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		return transport(t, nc, nats.WithReplicas(1)), func() { p.set(network{cut: true}) }
	})
}

// A network that passes nothing on while much data is on its way fills all buffers, so that nats.go waits with its lock
// held. Operations and Lost notice within seconds, whatever the size of the messages, and all is well when the network
// is.
func TestSilenceUnderLoad(t *testing.T) {
	const soon = 20 * time.Second // by default, a write of nats.go takes a minute
	for _, size := range []int{100, 10 << 10, 500 << 10} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			p := newProxy(t, strings.TrimPrefix(single(t, false).ClientURL(), "nats://"))
			nc, err := client.Connect(p.addr(), append(nats.Options(), client.UserInfo("app", "app"))...)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(nc.Close)
			tr := transport(t, nc, nats.WithReplicas(1))
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			err = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
				c, err := remote.Durable[[]byte](ctx, n, tr, "orders", 1<<20, remote.WithMeaning(remote.MeaningStored))
				if err != nil {
					return err
				}
				defer c.Leave()
				if err := c.Send(ctx, []byte("first")); err != nil {
					return err
				}
				p.set(network{cut: true})
				began := time.Now()
				lost := coir.NewEvent()
				for i := range 100 {
					n.Go("sender", func(ctx context.Context) error {
						for !lost.IsSet() {
							tr.Tell("noise", make([]byte, size)) // fills the buffers
							short, cancel := coir.WithTimeout(ctx, 10*time.Millisecond)
							sent := time.Now()
							err := c.Send(short, make([]byte, size))
							cancel()
							if took := time.Since(sent); took > soon {
								t.Errorf("a send took %v: %v", took, err)
							}
						}
						return nil
					}, coir.WithIndex(i))
				}
				for {
					if _, err := tr.Lost(); err != nil {
						break
					}
					if err := coir.Sleep(ctx, 10*time.Millisecond); err != nil {
						return err
					}
				}
				if took := time.Since(began); took > soon {
					t.Errorf("the loss was noticed after %v", took)
				}
				lost.Set()
				p.set(network{})
				return c.Send(ctx, []byte("last"))
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// proxy passes connections on to a server, over a network whose quality the test sets.
type proxy struct {
	to       string
	listener net.Listener
	running  sync.WaitGroup

	mu    sync.Mutex
	state network
	conns map[net.Conn]bool
}

// network is the quality of a network.
type network struct {
	cut   bool          // nothing passes, and connections are neither closed nor refused
	delay time.Duration // of each piece of data
	rate  int           // bytes in a second; 0 if not limited
}

func newProxy(t testing.TB, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{to: to, listener: l, conns: map[net.Conn]bool{}}
	p.running.Go(p.accept)
	t.Cleanup(func() {
		_ = l.Close()
		p.mu.Lock()
		for c := range p.conns {
			_ = c.Close()
		}
		clear(p.conns) // the data that a cut network still holds
		p.mu.Unlock()
		p.running.Wait()
	})
	return p
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

// set changes the network, also for existing connections.
func (p *proxy) set(n network) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = n
}

func (p *proxy) now() network {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

func (p *proxy) accept() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", p.to)
		if err != nil { // the server is not running
			_ = in.Close()
			continue
		}
		p.mu.Lock()
		p.conns[in], p.conns[out] = true, true
		p.mu.Unlock()
		p.running.Go(func() { p.pass(in, out) })
		p.running.Go(func() { p.pass(out, in) })
	}
}

// pass passes data on in one direction. While the network is cut, it keeps the data that it has read, like a network
// that loses packets, which are then sent again.
func (p *proxy) pass(from, to net.Conn) {
	defer func() {
		for _, c := range []net.Conn{from, to} {
			_ = c.Close()
			p.mu.Lock()
			delete(p.conns, c)
			p.mu.Unlock()
		}
	}()
	buf := make([]byte, 32<<10)
	for {
		size := len(buf)
		if rate := p.now().rate; rate > 0 {
			size = max(rate/100, 1)
		}
		n, err := from.Read(buf[:size])
		for is := p.now(); n > 0; is = p.now() {
			if is.cut {
				if !p.holds(from) {
					return
				}
				time.Sleep(5 * time.Millisecond) // part of the simulated network
				continue
			}
			time.Sleep(is.delay)
			if is.rate > 0 {
				time.Sleep(time.Duration(n) * time.Second / time.Duration(is.rate))
			}
			break
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// holds reports whether neither end of a connection is closed.
func (p *proxy) holds(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.conns[c]
}
