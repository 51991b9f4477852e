package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/bench/internal/timing"
	"github.com/coir-go/coir/netio"
)

// Two echo servers are compared: one has a fiber for each connection on netio, the other a goroutine for each
// connection on package net.
//
// Each side is two processes of its own, a server and a client. So 10,000 connections need 10,000 descriptors in each,
// and the client is the same for both. It is one thread on epoll, with one message of 64 bytes in flight on each
// connection. Between its rounds a side is idle. When a side is closed its client prints the quantiles of all its round
// trips.

const (
	echoServer = "echo-server/"
	echoClient = "echo-client/"
	message    = 64
)

func init() {
	for _, n := range []int{1, 100, 10_000} {
		table = append(table, comparison{
			name: "echo-" + strconv.Itoa(n), bound: 1.18, goal: 1.0, unit: "ns", rounds: longRounds,
			what:    fmt.Sprintf("a round trip of %d bytes on netio, %d connections, a fiber each", message, n),
			against: "package net, a goroutine each",
			coir:    echo("netio", n, 0, 300*time.Millisecond), other: echo("net", n, 0, 300*time.Millisecond),
		})
	}
	table = append(table, comparison{
		name: "netio-busy-p50", bound: 0.05, goal: 0.02, unit: "ns", rounds: longRounds,
		what:    "the p50 of a round trip every 3 ms on netio, while a goroutine for each processor computes",
		against: "package net",
		coir:    echo("netio", 1, 3*time.Millisecond, time.Second), other: echo("net", 1, 3*time.Millisecond, time.Second),
	}, comparison{
		name: "netio-idle-memory", bound: 0.2, goal: 0.15, unit: "B", rounds: fewRounds,
		what:    "an accepted connection of netio that waits by OnReadable, without a fiber",
		against: "one of package net, and a goroutine that reads",
		coir:    idleConns("netio"), other: idleConns("net"),
	}, comparison{
		name: "netio-buffers", bound: 0.5, unit: "ns", rounds: longRounds, round: 300 * time.Millisecond,
		what:    "eight pieces of 512 bytes to a Unix socket, by WriteBuffers of netio",
		against: "a Write of netio for each",
		coir:    writePieces(true), other: writePieces(false),
	})
}

// writePieces returns a side that writes pieces to a socket. A process that discards them reads at the other end.
func writePieces(together bool) func() side {
	return func() side {
		w, c := connectTo("discard/")
		x, err := netio.NewConn(c)
		check(err)
		conn := x.(*netio.Conn)
		piece := make([]byte, 512)
		var store [8][]byte
		return side{
			loop: func(n int) {
				check(coir.Run(context.Background(), func(ctx context.Context, _ *coir.Nursery) error {
					for range n {
						for i := range store {
							store[i] = piece
						}
						v := net.Buffers(store[:])
						var err error
						if together {
							_, err = conn.WriteBuffers(ctx, &v)
						} else {
							_, err = v.WriteTo(conn)
						}
						if err != nil {
							return err
						}
					}
					return nil
				}))
			},
			close: func() { check(conn.Close()); w.end() },
		}
	}
}

// A worker process is a server or a client. It reads commands from its input, one on each line, and answers each with a
// line.
type worker struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startWorker(what string) *worker {
	self, err := os.Executable()
	check(err)
	w := &worker{cmd: exec.Command(self, "-child", what)}
	w.cmd.Stderr = os.Stderr
	w.in, err = w.cmd.StdinPipe()
	check(err)
	out, err := w.cmd.StdoutPipe()
	check(err)
	w.out = bufio.NewReader(out)
	check(w.cmd.Start())
	return w
}

func (w *worker) line() string {
	s, err := w.out.ReadString('\n')
	if err != nil {
		panic(fmt.Sprintf("%v: %v", w.cmd.Args, err))
	}
	return strings.TrimSpace(s)
}

func (w *worker) ask(what string) string {
	fmt.Fprintln(w.in, what)
	return w.line()
}

// number asks for a number: the processor time that a server has used, or the memory that it holds.
func (w *worker) number(what string) float64 {
	n, err := strconv.ParseFloat(w.ask(what), 64)
	check(err)
	return n
}

func (w *worker) end() {
	_ = w.in.Close()
	check(w.cmd.Wait())
}

// A trips is the result of the client for a round.
type trips struct {
	Cost  float64 // of one round trip, by the rate
	P50   float64
	Trips int
}

// echo returns a side that has n connections for rounds of the given length. If every is not 0, a message is sent at
// that interval, the server's processors are busy, and the cost is the median of the round trips.
func echo(kind string, n int, every, length time.Duration) func() side {
	return func() side {
		server := startWorker(echoServer + kind)
		client := startWorker(fmt.Sprintf("%s%s/%s/%d/%s", echoClient, kind, server.line(), n, every))
		client.line() // it is connected
		return side{
			measure: func() sample {
				if every > 0 {
					server.ask("busy")
					defer server.ask("rest")
				}
				var t trips
				used := server.number("cpu")
				check(json.Unmarshal([]byte(client.ask(length.String())), &t))
				if every > 0 {
					return sample{Cost: t.P50}
				}
				if *cpu {
					return sample{Cost: (server.number("cpu") - used) / float64(t.Trips)}
				}
				return sample{Cost: t.Cost}
			},
			close: func() { client.end(); server.end() },
		}
	}
}

// idleConns returns a side that measures the memory that a connection holds in a server.
func idleConns(kind string) func() side {
	return func() side {
		return side{measure: func() sample {
			const n = 10_000
			server := startWorker(echoServer + kind + "-idle")
			address := server.line()
			before := server.number("held")
			client := startWorker(fmt.Sprintf("%s%s/%s/%d/0s", echoClient, kind, address, n))
			client.line()
			for server.ask("conns") != strconv.Itoa(n) { // connections that were not accepted yet are queued
				runtime.Gosched()
			}
			after := server.number("held")
			client.end()
			server.end()
			return sample{Cost: (after - before) / n}
		}}
	}
}

// echoServerMain is the main function of a server process.
func echoServerMain(kind string) {
	kind, idle := strings.CutSuffix(kind, "-idle")
	listen, serve := netio.Listen, serveFibers
	if kind == "net" {
		listen, serve = net.Listen, serveGoroutines
	}
	l, err := listen("tcp", "127.0.0.1:0")
	check(err)
	var conns atomic.Int64
	go func() { panic(serve(l, &conns, idle)) }()
	fmt.Println(l.Addr())
	var busy atomic.Bool
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		switch lines.Text() {
		case "busy":
			busy.Store(true)
			for range runtime.GOMAXPROCS(0) {
				go func() {
					for busy.Load() {
					}
				}()
			}
			fmt.Println()
		case "rest":
			busy.Store(false)
			fmt.Println()
		case "cpu":
			fmt.Println(int64(timing.Now(true)))
		case "held":
			bytes, _ := timing.Held()
			fmt.Println(bytes)
		case "conns":
			fmt.Println(conns.Load())
		}
	}
}

func serveGoroutines(l net.Listener, conns *atomic.Int64, _ bool) error {
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		conns.Add(1)
		go serveEcho(c)
	}
}

// serveFibers starts the fiber of a connection when there is something to read, if the connections are idle.
func serveFibers(l net.Listener, conns *atomic.Int64, idle bool) error {
	return coir.Run(context.Background(), func(_ context.Context, nur *coir.Nursery) error {
		for {
			c, err := l.Accept()
			if err != nil {
				return err
			}
			conns.Add(1)
			serve := func(context.Context) error { serveEcho(c); return nil } //nolint:unparam // as Go asks
			if !idle {
				nur.Go("echo", serve)
			} else if err := c.(*netio.Conn).OnReadable(func() { nur.Go("echo", serve) }); err != nil {
				return err
			}
		}
	})
}

func serveEcho(c net.Conn) {
	defer c.Close()
	b := make([]byte, message)
	for {
		n, err := c.Read(b)
		if err != nil {
			return
		}
		if _, err := c.Write(b[:n]); err != nil {
			return
		}
	}
}

// echoClientMain is the main function of a client process.
func echoClientMain(what string) {
	parts := strings.Split(what, "/")
	n, _ := strconv.Atoi(parts[2])
	every, _ := time.ParseDuration(parts[3])
	to, err := net.ResolveTCPAddr("tcp", parts[1])
	check(err)
	at := &syscall.SockaddrInet4{Port: to.Port, Addr: [4]byte(to.IP.To4())}
	ep, err := syscall.EpollCreate1(0)
	check(err)
	sent := make(map[int32]time.Time, n)
	conns := make([]int, n)
	for i := range conns {
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		check(err)
		check(syscall.Connect(fd, at))
		check(syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1))
		check(syscall.EpollCtl(ep, syscall.EPOLL_CTL_ADD, fd, &syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(fd)}))
		conns[i] = fd
	}
	fmt.Println()

	var all []float64
	var b [message]byte
	var events [256]syscall.EpollEvent
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		length, err := time.ParseDuration(lines.Text())
		check(err)
		var took []float64
		send := func(fd int) {
			sent[int32(fd)] = time.Now()
			_, err := syscall.Write(fd, b[:])
			check(err)
		}
		began := time.Now()
		for _, fd := range conns {
			send(fd)
		}
		var last time.Time
		for under := n; under > 0; {
			k, err := syscall.EpollWait(ep, events[:], -1)
			if err == syscall.EINTR {
				continue
			}
			check(err)
			for _, e := range events[:k] {
				m, err := syscall.Read(int(e.Fd), b[:])
				check(err)
				if m != message {
					panic("part of a message")
				}
				last = time.Now()
				took = append(took, float64(last.Sub(sent[e.Fd])))
				if last.Sub(began) > length {
					under--
					continue
				}
				time.Sleep(every) // nothing, if it is 0
				send(int(e.Fd))
			}
		}
		all = append(all, took...)
		cost := float64(last.Sub(began)) / float64(len(took))
		out, err := json.Marshal(trips{Cost: cost, P50: timing.Quantile(took, 0.5), Trips: len(took)})
		check(err)
		fmt.Printf("%s\n", out)
	}
	quantile := func(q float64) time.Duration { return time.Duration(timing.Quantile(all, q)) }
	if len(all) > 0 {
		fmt.Fprintf(os.Stderr, "%d connections, %s: p50 %v, p99 %v, p99.9 %v of %d round trips\n", n, parts[0],
			quantile(0.5), quantile(0.99), quantile(0.999), len(all))
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
