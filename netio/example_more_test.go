//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package netio_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/netio"
	"github.com/coir-go/coir/sim"
)

// A client and its server run in a simulation. sim finds that one read does not always return one message.
func Example_simulation() {
	program := func(ctx context.Context, s *sim.Sim) {
		_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			l, err := netio.Listen("tcp", "server:80")
			if err != nil {
				return err
			}
			n.Go("server", func(context.Context) error {
				defer l.Close()
				c, err := l.Accept()
				if err != nil {
					return err
				}
				defer c.Close()
				b := make([]byte, 100)
				if n, _ := c.Read(b); string(b[:n]) != "hello" {
					s.Errorf("only a part of it was read")
				}
				return nil
			})
			n.Go("client", func(context.Context) error {
				c, err := netio.Dial("tcp", "server:80")
				if err != nil {
					return err
				}
				defer c.Close()
				_, err = io.WriteString(c, "hello")
				return err
			})
			return nil
		})
	}
	fmt.Println(sim.Explore(program).Failure == nil)
	fmt.Println(sim.Explore(program, sim.WithFaults("netio partial read")).Failure.Text)
	// Output:
	// true
	// only a part of it was read
}

// A time limit of coir is exact in a simulation. A deadline computed with time.Now depends on the real time that passes
// until it is set.
func Example_simulatedTime() {
	f := sim.Run(1, func(ctx context.Context, s *sim.Sim) {
		l, err := netio.Listen("tcp", "server:80")
		if err != nil {
			s.Fatalf("%v", err)
		}
		defer l.Close()
		ctx, cancel := coir.WithTimeout(ctx, 1234567*time.Nanosecond)
		defer cancel()
		_, err = l.(*netio.Listener).AcceptContext(ctx)
		fmt.Println(errors.Is(err, coir.ErrTimeout), s.Now())
	})
	fmt.Println(f == nil)
	// Output:
	// true 1.234567ms
	// true
}

func ExampleListen() {
	l, err := netio.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(l.Addr().Network())
	fmt.Println(l.Close())
	// Output:
	// tcp
	// <nil>
}

func ExampleDial() {
	l, err := netio.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	_ = l.Close()
	_, err = netio.Dial("tcp", l.Addr().String())
	fmt.Println(errors.Is(err, syscall.ECONNREFUSED))
	// Output: true
}

// A socket sends a packet to itself.
func ExampleListenPacket() {
	c, err := netio.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	if _, err := c.WriteTo([]byte("a packet"), c.LocalAddr()); err != nil {
		log.Fatal(err)
	}
	b := make([]byte, 100)
	n, from, err := c.ReadFrom(b)
	fmt.Printf("%s %v %v\n", b[:n], from.String() == c.LocalAddr().String(), err)
	// Output: a packet true <nil>
}

// A wait for a packet ends when its context ends.
func ExamplePacketConn_ReadFromContext() {
	c, err := netio.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := coir.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_, _, err = c.(*netio.PacketConn).ReadFromContext(ctx, make([]byte, 100))
	fmt.Println(errors.Is(err, coir.ErrTimeout))
	// Output: true
}

// NewConn takes over a connection of package net, for fibers.
func ExampleNewConn() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	fmt.Fprintln(client, "hello")
	accepted, err := l.Accept()
	if err != nil {
		log.Fatal(err)
	}
	c, err := netio.NewConn(accepted)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	line, err := bufio.NewReader(c).ReadString('\n')
	fmt.Printf("%q %v\n", line, err)
	// Output: "hello\n" <nil>
}

func ExampleNewListener() {
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	l, err := netio.NewListener(plain)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(l.Addr().String() == plain.Addr().String())
	fmt.Println(l.Close())
	// Output:
	// true
	// <nil>
}

func ExampleListenConfig() {
	lc := netio.ListenConfig{KeepAlive: time.Minute}
	l, err := lc.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(l.Close())
	// Output: <nil>
}

// A server ends when its context ends.
func ExampleListener_AcceptContext() {
	l, err := netio.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := coir.WithCancel(context.Background())
	cancel()
	_, err = l.(*netio.Listener).AcceptContext(ctx)
	fmt.Println(errors.Is(err, context.Canceled))
	// Output: true
}

// A read that times out leaves the connection usable.
func ExampleConn_ReadContext() {
	l, err := netio.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	c, err := netio.Dial("tcp", l.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := coir.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_, err = c.(*netio.Conn).ReadContext(ctx, make([]byte, 1))
	fmt.Println(errors.Is(err, coir.ErrTimeout))
	// Output: true
}

// A fiber waits for data from a pipe.
func ExampleNewFD() {
	var ends [2]int
	if err := syscall.Pipe(ends[:]); err != nil {
		log.Fatal(err)
	}
	w := os.NewFile(uintptr(ends[1]), "pipe")
	defer w.Close()
	r, err := netio.NewFD(ends[0], "pipe")
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	err = coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		n.Go("write", func(context.Context) error {
			_, err := fmt.Fprint(w, "through the pipe")
			return err
		})
		b := make([]byte, 100)
		k, err := r.Read(ctx, b)
		fmt.Printf("%s\n", b[:k])
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: through the pipe
}
