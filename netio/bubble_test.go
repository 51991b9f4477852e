//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package netio_test

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coir-go/coir/netio"
)

// TestBubble checks that in a bubble of testing/synctest an operation that would wait fails with an error that says
// what to do, and that the bubble's clock still advances.
func TestBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := netio.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		refused := func(what string, err error) {
			t.Helper()
			if err == nil || !strings.Contains(err.Error(), "testing/synctest") {
				t.Errorf("%s: %v", what, err)
			}
		}
		_, err = l.Accept()
		refused("accept", err)
		c, err := netio.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		_, err = io.ReadAll(c)
		refused("read", err)
		refused("readable", c.(*netio.Conn).OnReadable(func() {}))
		began := time.Now()
		time.Sleep(time.Hour) // virtual time
		if passed := time.Since(began); passed != time.Hour {
			t.Errorf("an hour took %v", passed)
		}
	})
}

// TestBubbleDeadlines checks that no deadline is set in a bubble. Otherwise a timer of the bubble could be stopped
// outside of it, which ends the program.
func TestBubbleDeadlines(t *testing.T) {
	outside, peer := pair(t, "tcp")
	var inside net.Conn
	synctest.Test(t, func(t *testing.T) {
		l, err := netio.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if inside, err = netio.Dial("tcp", l.Addr().String()); err != nil {
			t.Fatal(err)
		}
		late := time.Now().Add(time.Hour)
		for what, err := range map[string]error{
			"listener":         l.(*netio.Listener).SetDeadline(late),
			"made in a bubble": inside.SetDeadline(late),
			"read":             outside.SetReadDeadline(late),
			"write":            outside.SetWriteDeadline(late),
		} {
			if err == nil || !strings.Contains(err.Error(), "testing/synctest") {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if err := outside.SetReadDeadline(time.Unix(1, 0)); err != nil { // needs no timer
			t.Error(err)
		}
		if _, err := outside.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read after the deadline: %v", err)
		}
		if err := outside.SetDeadline(time.Time{}); err != nil {
			t.Error(err)
		}
	})
	if err := inside.Close(); err != nil {
		t.Error(err)
	}
	if _, err := peer.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	if n, err := outside.Read(make([]byte, 2)); n != 1 || err != nil {
		t.Error(n, err)
	}
}
