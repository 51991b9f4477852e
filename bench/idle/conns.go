package main

import (
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/netio"
)

// listen accepts n connections of another process, and returns when all of them wait. The function that it returns ends
// that process, and with it the connections.
func listen(n int) (stop func()) {
	l, err := netio.Listen("tcp", "127.0.0.1:0")
	check(err)
	self, err := os.Executable()
	check(err)
	cmd := exec.Command(self, "-dial", l.Addr().String(), "-conns", strconv.Itoa(n))
	input, err := cmd.StdinPipe()
	check(err)
	check(cmd.Start())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- coir.Run(context.Background(), func(_ context.Context, nur *coir.Nursery) error {
			for i := range n {
				c, err := l.Accept()
				if err != nil {
					return err
				}
				read := func(context.Context) error {
					_, _ = c.Read(make([]byte, 1))
					return c.Close()
				}
				if i%2 == 0 {
					nur.Go("read", read)
				} else if err := c.(*netio.Conn).OnReadable(func() { nur.Go("end", read) }); err != nil {
					return err
				}
			}
			close(ready)
			return l.Close()
		})
	}()
	<-ready
	return func() {
		check(input.Close())
		check(cmd.Wait())
		check(<-ended)
	}
}

// connect is all that the other process does.
func connect(address string, n int) {
	for range n {
		c, err := net.Dial("tcp", address)
		check(err)
		defer c.Close()
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	check(err)
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
