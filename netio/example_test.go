package netio_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/netio"
)

// A server has a fiber for each connection, and a client connects to it.
func Example() {
	l, err := netio.Listen("tcp", "localhost:0")
	if err != nil {
		log.Fatal(err)
	}
	err = coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		n.Go("serve", func(context.Context) error {
			c, err := l.Accept()
			if err != nil {
				return err
			}
			n.Go("echo", func(context.Context) error {
				defer c.Close()
				_, err := io.Copy(c, c)
				return err
			})
			return l.Close()
		})
		n.Go("client", func(context.Context) error {
			c, err := netio.Dial("tcp", l.Addr().String())
			if err != nil {
				return err
			}
			defer c.Close()
			if _, err := fmt.Fprint(c, "hello"); err != nil {
				return err
			}
			if err := c.(*netio.Conn).CloseWrite(); err != nil {
				return err
			}
			answer, err := io.ReadAll(c)
			fmt.Printf("%s\n", answer)
			return err
		})
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: hello
}

// net/http uses connections of netio at both ends.
func ExampleDialer() {
	l, err := netio.Listen("tcp", "localhost:0")
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "this is %s", r.URL.Path)
	})}
	go func() { _ = server.Serve(l) }()
	defer server.Close()

	transport := &http.Transport{DialContext: new(netio.Dialer).DialContext}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	resp, err := client.Get("http://" + l.Addr().String() + "/page")
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	fmt.Printf("%s %v\n", body, err)
	// Output: this is /page <nil>
}

// A connection waits without a fiber. The callback starts a fiber when there is something to read.
func ExampleConn_OnReadable() {
	l, err := netio.Listen("tcp", "localhost:0")
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	err = coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		client, err := netio.Dial("tcp", l.Addr().String())
		if err != nil {
			return err
		}
		defer client.Close()
		c, err := l.Accept()
		if err != nil {
			return err
		}
		done := coir.NewEvent(coir.WithName("done"))
		err = c.(*netio.Conn).OnReadable(func() {
			n.Go("request", func(ctx context.Context) error {
				defer done.Set()
				defer c.Close()
				b := make([]byte, 10)
				m, err := c.Read(b)
				fmt.Printf("%s\n", b[:m])
				return err
			})
		})
		if err != nil {
			return err
		}
		if _, err := fmt.Fprint(client, "wake up"); err != nil {
			return err
		}
		return done.Wait(ctx)
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: wake up
}
