// Command shm passes frames from a producer to a consumer in another process, through shared memory. Either may be
// killed and started again while the other runs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/netio"
)

var (
	socket  = flag.String("socket", os.TempDir()+"/coir-frames", "the Unix socket where the two meet")
	produce = flag.Bool("produce", false, "produce frames")
	consume = flag.Bool("consume", false, "consume frames")
	every   = flag.Duration("every", 10*time.Millisecond, "the time between two frames")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := coir.Run(ctx, func(ctx context.Context, _ *coir.Nursery) error {
		switch {
		case *produce:
			return Produce(ctx, dialer(*socket), *every, Watch{End: printReport})
		case *consume:
			_ = os.Remove(*socket) // may be left from a consumer that was killed
			l, err := netio.Listen("unix", *socket)
			if err != nil {
				return err
			}
			defer func() { _ = l.Close() }()
			return Consume(ctx, l.(*netio.Listener), Watch{End: printReport})
		}
		return errors.New("shm: say -produce in one process, and -consume in another")
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // the process ends, so stop need not run
	}
}

// dialer returns a function that connects to the consumer.
func dialer(path string) Dial {
	return func(ctx context.Context) (*netio.Conn, error) {
		c, err := new(netio.Dialer).DialContext(ctx, "unix", path)
		if err != nil {
			return nil, err
		}
		return c.(*netio.Conn), nil
	}
}

func printReport(r Report) { fmt.Println(r) }
