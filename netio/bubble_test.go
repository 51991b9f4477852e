//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package netio_test

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coir-go/coir/netio"
)

// TestBubble: in a bubble of testing/synctest an operation that would wait fails and says what to do, and the bubble's
// time goes on.
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
		time.Sleep(time.Hour) // of the bubble
		if passed := time.Since(began); passed != time.Hour {
			t.Errorf("an hour took %v", passed)
		}
	})
}
