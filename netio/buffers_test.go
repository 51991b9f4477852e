package netio_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/netio"
	"github.com/coir-go/coir/sim"
)

// pieces returns a text in many pieces, some of which are empty, and the whole text.
func pieces(n int) (net.Buffers, []byte) {
	rng := rand.New(rand.NewPCG(1, 2))
	var v net.Buffers
	var text []byte
	for range n {
		p := make([]byte, rng.IntN(2000)*rng.IntN(2))
		for i := range p {
			p[i] = byte(rng.Uint32())
		}
		v = append(v, p)
		text = append(text, p...)
	}
	return v, text
}

// The pieces arrive in order, even if there are more than one system call can write and more than the socket can hold.
func TestWriteBuffers(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			inBoth(t, func(t *testing.T, start func(func())) {
				c, peer := pair(t, network)
				v, text := pieces(5000)
				got := make(chan []byte, 1)
				go func() {
					all, _ := io.ReadAll(peer)
					got <- all
				}()
				start(func() {
					n, err := c.(*netio.Conn).WriteBuffers(t.Context(), &v)
					if n != int64(len(text)) || err != nil || len(v) != 0 {
						t.Errorf("%d bytes and %v, want %d; %d pieces are left", n, err, len(text), len(v))
					}
					_ = c.Close()
					if !bytes.Equal(<-got, text) {
						t.Error("the bytes differ")
					}
				})
			})
		})
	}
}

// A cancellation ends the write. The result says how much was written, and v keeps the rest, so that it can be written
// later.
func TestWriteBuffersIsCancelled(t *testing.T) {
	inBoth(t, func(t *testing.T, start func(func())) {
		c, peer := pair(t, "tcp")
		v, text := pieces(50_000)
		start(func() {
			ctx, cancel := coir.WithTimeout(t.Context(), 5*time.Millisecond) // the socket cannot hold it all
			defer cancel()
			n, err := c.(*netio.Conn).WriteBuffers(ctx, &v)
			if !errors.Is(err, context.DeadlineExceeded) || n == int64(len(text)) {
				t.Fatalf("%d bytes and %v", n, err)
			}
			got := make(chan []byte, 1)
			go func() {
				all, _ := io.ReadAll(peer)
				got <- all
			}()
			m, err := c.(*netio.Conn).WriteBuffers(t.Context(), &v)
			if n+m != int64(len(text)) || err != nil {
				t.Errorf("%d and %d bytes, want %d: %v", n, m, len(text), err)
			}
			_ = c.Close()
			if !bytes.Equal(<-got, text) {
				t.Error("the bytes differ")
			}
			if _, err := c.(*netio.Conn).WriteBuffers(t.Context(), &net.Buffers{[]byte("x")}); !errors.Is(err, net.ErrClosed) {
				t.Errorf("after Close: %v", err)
			}
		})
	})
}

// The pieces also arrive in a simulation.
func TestWriteBuffersSimulated(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			l, err := netio.Listen("tcp", "host:1")
			if err != nil {
				return err
			}
			n.Go("client", func(ctx context.Context) error {
				c, err := netio.Dial("tcp", "host:1")
				if err != nil {
					return err
				}
				defer c.Close()
				_, err = c.(*netio.Conn).WriteBuffers(ctx, &net.Buffers{[]byte("a"), nil, []byte("bc")})
				return err
			})
			c, err := l.Accept()
			if err != nil {
				return err
			}
			defer c.Close()
			if all, err := io.ReadAll(c); string(all) != "abc" || err != nil {
				s.Fatalf("%q, %v", all, err)
			}
			return l.Close()
		})
		if err != nil {
			s.Fatalf("%v", err)
		}
	}, sim.WithSchedules(20))
}
