// Package loopback runs the tests of golang.org/x/net/nettest on connections over loopback addresses. coir test runs
// them on its network in memory: see the step coirtest.
package loopback

import (
	"net"
	"path/filepath"
	"testing"

	"golang.org/x/net/nettest"
)

func TestConn(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			nettest.TestConn(t, func() (a, b net.Conn, stop func(), err error) {
				address := "127.0.0.1:0"
				if network == "unix" {
					address = filepath.Join(t.TempDir(), "s")
				}
				l, err := net.Listen(network, address)
				if err != nil {
					return nil, nil, nil, err
				}
				if a, err = net.Dial(network, l.Addr().String()); err != nil {
					return nil, nil, nil, err
				}
				if b, err = l.Accept(); err != nil {
					return nil, nil, nil, err
				}
				return a, b, func() { _, _, _ = a.Close(), b.Close(), l.Close() }, nil
			})
		})
	}
}
