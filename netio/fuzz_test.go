//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package netio_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/netio"
)

// FuzzAgainstNet runs a script on a connection of package net and on one of netio, in a goroutine and in a fiber. Each
// step must return the same results on both.
//
//	go test ./netio -run - -fuzz FuzzAgainstNet
func FuzzAgainstNet(f *testing.F) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 0))
		script := make([]byte, 2+r.IntN(30))
		for i := range script {
			script[i] = byte(r.UintN(256))
		}
		f.Add(script)
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 100 {
			script = script[:100]
		}
		network := []string{"tcp", "unix"}[len(script)%2]
		want := play(t, network, script, func(c net.Conn) (net.Conn, error) { return c, nil })
		got := play(t, network, script, netio.NewConn)
		if !slices.Equal(got, want) {
			t.Errorf("in a goroutine:\n%s\npackage net:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		err := coir.Run(t.Context(), func(context.Context, *coir.Nursery) error {
			got = play(t, network, script, netio.NewConn)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("in a fiber:\n%s\npackage net:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// play runs the script, and returns the results of each step.
func play(t *testing.T, network string, script []byte, take func(net.Conn) (net.Conn, error)) (log []string) {
	address := "localhost:0"
	if network == "unix" {
		address = t.TempDir() + "/s"
	}
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial(network, l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	peer, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	if c, err = take(c); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	type halves interface {
		CloseRead() error
		CloseWrite() error
	}

	there := 0       // bytes that the peer has written and c has not read
	ended := false   // the peer has closed its end
	shut := false    // c has closed its end
	dead := false    // the connection was reset or closed: the result of a write depends on timing
	expired := false // the deadline of reads has passed
	note := func(what string, n int, err error) {
		log = append(log, fmt.Sprintf("%s %d %s", what, n, class(err)))
	}
	next := func() int {
		if len(script) == 0 {
			return 0
		}
		b := script[0]
		script = script[1:]
		return int(b)
	}
	for len(script) > 0 {
		switch op, k := next()%14, next(); op {
		case 0, 1: // the peer writes
			if ended || dead {
				continue
			}
			if _, err := peer.Write(make([]byte, k)); err == nil {
				there += k
			}
		case 2: // part of the data is read, by reads that leave some
			n, err := io.ReadFull(c, make([]byte, min(k, there)))
			there -= n
			note("read", n, err)
		case 3: // all data is read, by reads that ask for more than there is
			total, err := 0, error(nil)
			for err == nil && there > 0 {
				var n int
				n, err = c.Read(make([]byte, there+k))
				total, there = total+n, there-n
			}
			note("read all", total, err)
		case 4: // a read that times out
			if there > 0 || dead {
				continue
			}
			limit := 500 * time.Microsecond
			if ended { // the end has arrived, and the deadline must not come first
				limit = time.Hour
			}
			note("set", 0, c.SetReadDeadline(time.Now().Add(limit)))
			n, err := c.Read(make([]byte, 1))
			note("read in vain", n, err)
			expired = !ended
			if k%2 == 0 {
				note("set", 0, c.SetReadDeadline(time.Time{}))
				expired = false
			}
		case 5:
			expired = k%2 == 0
			if expired {
				note("set", 0, c.SetDeadline(time.Unix(1, 0)))
				n, err := c.Write([]byte("x"))
				note("write late", n, err)
			} else {
				note("set", 0, c.SetDeadline(time.Time{}))
			}
		case 6: // the deadline of writes is that of reads, or none
			_ = c.SetWriteDeadline(time.Time{})
			if dead {
				continue
			}
			n, err := c.Write(make([]byte, k*100))
			note("write", n, err)
			if err == nil {
				m, err := io.ReadFull(peer, make([]byte, k*100))
				note("peer", m, err)
			}
		case 7:
			if k%4 == 0 && !(ended && shut) { // the answer of a connection with both ends closed depends on timing
				shut = true
				note("close write", 0, c.(halves).CloseWrite())
			}
		case 8:
			if k%4 == 0 && !dead {
				_ = peer.(halves).CloseWrite()
				ended = true
			}
		case 9:
			if k%8 == 0 {
				note("close", 0, c.Close())
				dead, there = true, 0
			}
		case 10: // a read waits, and k decides what ends it
			if there > 0 || dead || ended || expired {
				continue
			}
			over := make(chan string, 1)
			go func() {
				n, err := c.Read(make([]byte, 10))
				over <- fmt.Sprintf("wait %d %s", n, class(err))
			}()
			switch k % 3 {
			case 0:
				_, _ = peer.Write([]byte("abc"))
			case 1:
				_ = c.SetReadDeadline(time.Unix(1, 0))
				expired = true
			case 2:
				_ = c.Close()
				dead = true
			}
			log = append(log, <-over)
		case 11:
			n, err := c.Read(nil)
			note("read nothing", n, err)
		case 12: // database drivers use this to check whether an idle connection is alive
			if dead { // SyscallConn fails in netio, but not in package net
				continue
			}
			if !expired {
				note("set", 0, c.SetReadDeadline(time.Now().Add(10*time.Second))) // in case the read waits
			}
			n, calls, err := peek(c, there > 0 || ended)
			note("peek", n, err)
			if there == 0 && !ended {
				note("calls", calls, nil)
			}
			if !expired {
				note("set", 0, c.SetReadDeadline(time.Time{}))
			}
		case 13: // the function of a raw Write is called once if it returns true
			if dead {
				continue
			}
			raw, err := c.(syscall.Conn).SyscallConn()
			note("raw", 0, err)
			calls := 0
			err = raw.Write(func(uintptr) bool { calls++; return true })
			note("raw write", calls, err)
		}
	}
	note("close", 0, c.Close())
	return log
}

// peek reads the first byte with a raw Read, without removing it. It returns how many bytes it saw, and how often the
// function was called. If wait is false, the function never asks to wait.
func peek(c net.Conn, wait bool) (n, calls int, err error) {
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		calls++
		n, _, failed = syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK)
		return failed != syscall.EAGAIN || !wait
	})
	if err != nil {
		return 0, calls, err
	}
	return max(n, 0), calls, failed
}

// class returns the part of an error that the test compares.
func class(err error) string {
	s := ""
	var e *net.OpError
	if errors.As(err, &e) {
		s = e.Op + " " + e.Net + " "
	}
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return s + "end"
	case errors.Is(err, net.ErrClosed):
		return s + "closed"
	case errors.Is(err, os.ErrDeadlineExceeded):
		return s + "deadline"
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return s + errno.Error()
	}
	return err.Error()
}
