// Command cmd serves package hub on TCP until SIGTERM or an interrupt. Connect with nc; the first line is your name.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/coir-go/coir/examples/hub"
)

func main() {
	address := flag.String("listen", "localhost:7000", "address to listen on")
	keep := flag.Int("keep", 100, "messages that are kept for a slow member")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := serve(ctx, *address, hub.New(*keep)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, address string, h *hub.Hub) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Println("listening on", l.Addr())
	return h.Serve(ctx, l, 5*time.Second)
}
