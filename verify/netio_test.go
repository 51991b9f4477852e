package verify

import (
	"net"
	"path/filepath"
	"testing"

	"golang.org/x/net/nettest"

	"github.com/coir-go/coir/netio"
)

// The suite of golang.org/x/net for a net.Conn, with connections of netio at both ends or at one.
func TestNetioIsAConn(t *testing.T) {
	type dial func(network, address string) (net.Conn, error)
	type listen func(network, address string) (net.Listener, error)
	for _, ends := range []struct {
		name   string
		dial   dial
		listen listen
	}{
		{"netio", netio.Dial, netio.Listen},
		{"dialed", netio.Dial, net.Listen},
		{"accepted", net.Dial, netio.Listen},
	} {
		for _, network := range []string{"tcp", "unix"} {
			t.Run(ends.name+"/"+network, func(t *testing.T) {
				nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
					address := "localhost:0"
					if network == "unix" {
						address = filepath.Join(t.TempDir(), "s")
					}
					l, err := ends.listen(network, address)
					if err != nil {
						return nil, nil, nil, err
					}
					defer l.Close()
					if c1, err = ends.dial(network, l.Addr().String()); err != nil {
						return nil, nil, nil, err
					}
					if c2, err = l.Accept(); err != nil {
						c1.Close()
						return nil, nil, nil, err
					}
					return c1, c2, func() { c1.Close(); c2.Close() }, nil
				})
			})
		}
	}
}
