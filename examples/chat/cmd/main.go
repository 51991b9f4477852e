// Command cmd serves package chat on TCP until it is interrupted. Connect with nc.
//
// With -bench it measures itself: a second process connects the given number of clients, and both processes print their
// figures.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/examples/chat"
	"github.com/coir-go/coir/netio"
)

var (
	listen   = flag.String("listen", "localhost:7000", "address to listen on")
	queue    = flag.Int("queue", 100, "lines that are kept for a slow client")
	bench    = flag.Int("bench", 0, "measure with that many clients")
	messages = flag.Int("messages", 10, "of each speaker, when measuring")
	load     = flag.String("load", "", "be the clients of a server at that address, when measuring")
)

const speakers = 10

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if *load != "" {
		err = clients(ctx)
	} else {
		err = serve(ctx)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // the process ends, so stop need not run
	}
}

// serve serves until ctx ends or the measurement is complete.
func serve(ctx context.Context) error {
	if *bench > 0 {
		*listen = "localhost:0"
	}
	l, err := netio.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	fmt.Println("listening on", l.Addr())
	s := chat.New(*queue)
	err = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		if *bench > 0 {
			before := memory()
			n.Go("measure", func(ctx context.Context) error {
				defer n.Cancel(nil)
				return measure(ctx, s, l.Addr().String(), before)
			})
		}
		return s.Serve(ctx, l.(*netio.Listener))
	})
	fmt.Println(s.Stats())
	return err
}

// measure runs the clients in another process: the two ends of 10,000 connections need too many descriptors for one.
func measure(ctx context.Context, s *chat.Server, address string, before uint64) error {
	cmd := exec.CommandContext(ctx, os.Args[0], "-load", address, "-bench", strconv.Itoa(*bench), "-messages",
		strconv.Itoa(*messages))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	begin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	return coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
		done := coir.NewEvent(coir.WithName("clients"))
		n.Go("clients", func(context.Context) error {
			defer done.Set()
			return cmd.Run()
		}, coir.WithGoroutine())
		for s.Stats().Clients < int64(*bench) {
			i, err := coir.Select(ctx, done.DoneCase(), coir.After(time.Millisecond))
			if err != nil || i == 0 {
				return err
			}
		}
		fmt.Printf("server: %d bytes a client\n", (memory()-before)/uint64(*bench))
		if err := begin.Close(); err != nil {
			return err
		}
		return done.Wait(ctx)
	})
}

// memory returns the bytes that the heap and the stacks use.
func memory() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// clients connects clients to the server, and measures how fast messages reach all of them.
func clients(ctx context.Context) error {
	began := time.Now()
	took, err := chat.Load(ctx, *load, *bench, speakers, *messages, func() error {
		fmt.Printf("clients: %d connected in %v\n", *bench, time.Since(began).Round(time.Millisecond))
		_, err := io.Copy(io.Discard, os.Stdin) // returns when the server has measured its memory
		return err
	})
	if err != nil {
		return err
	}
	all := float64(speakers * *messages)
	fmt.Printf("clients: %d messages to %d clients in %v: %.0f messages a second, %.0f deliveries a second\n",
		speakers**messages, *bench, took.Round(time.Millisecond), all/took.Seconds(),
		all*float64(*bench)/took.Seconds())
	return nil
}
