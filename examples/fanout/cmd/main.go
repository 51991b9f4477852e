// Command cmd serves package fanout until SIGTERM or an interrupt. Its arguments are the addresses of the backends.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/coir-go/coir/examples/fanout"
)

func main() {
	address := flag.String("listen", "localhost:8080", "address to listen on")
	deadline := flag.Duration("deadline", 150*time.Millisecond, "deadline of a request")
	hedge := flag.Duration("hedge", 40*time.Millisecond, "time after which a call is made a second time")
	calls := flag.Int("calls", 64, "calls that may run at a time")
	flag.Parse()
	c := fanout.Config{Deadline: *deadline, Hedge: *hedge, Calls: *calls, Grace: 5 * time.Second}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: *calls}}
	for _, backend := range flag.Args() {
		c.Backends = append(c.Backends, fanout.Backend(client, backend))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := serve(ctx, *address, fanout.New(c)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, address string, g *fanout.Gateway) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Println("listening on", l.Addr())
	return g.Serve(ctx, l)
}
