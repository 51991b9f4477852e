// Command orders sends orders to other processes, and receives them.
//
//	orders            receives orders, until Ctrl-C
//	orders tea milk   sends two orders
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"

	client "github.com/nats-io/nats.go"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/nats"
)

// Order is a value of the channel.
type Order struct{ Item string }

func main() {
	if err := run(os.Args[1:]); err != nil && !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
}

func run(items []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	transport, disconnect, err := connect(ctx)
	if err != nil {
		return err
	}
	defer disconnect()
	if len(items) > 0 {
		return send(ctx, transport, items, func(o Order) { fmt.Println("stored", o.Item) })
	}
	return receive(ctx, transport, func(o Order) { fmt.Println("received", o.Item) })
}

// connect returns a connection to the broker, and a function that ends it.
func connect(ctx context.Context) (remote.Transport, func(), error) {
	conn, err := client.Connect(cmp.Or(os.Getenv("NATS_URL"), client.DefaultURL), nats.Options()...)
	if err != nil {
		return nil, nil, err
	}
	transport, err := nats.New(ctx, conn, nats.WithReplicas(1)) // one server; the default is three
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	return transport, func() { transport.Close(); conn.Close() }, nil
}

// open opens the channel. Its name and its capacity are the same in all processes.
func open(ctx context.Context, n *coir.Nursery, transport remote.Transport) (*remote.Chan[Order], error) {
	return remote.Durable[Order](ctx, n, transport, "orders", 64,
		remote.WithMeaning(remote.MeaningStored)) // not synced to disk, on one server: for a first try
}

func send(ctx context.Context, transport remote.Transport, items []string, stored func(Order)) error {
	return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		orders, err := open(ctx, n, transport)
		if err != nil {
			return err
		}
		defer orders.Leave()
		for _, item := range items {
			order := Order{Item: item}
			if err := orders.Send(ctx, order); err != nil {
				return err
			}
			stored(order)
		}
		return nil
	})
}

func receive(ctx context.Context, transport remote.Transport, process func(Order)) error {
	return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		orders, err := open(ctx, n, transport)
		if err != nil {
			return err
		}
		defer orders.Leave()
		for {
			err := orders.RecvTx(ctx, func(_ context.Context, it *remote.Item[Order]) error {
				process(it.Value)
				return nil // done: remove the value; after an error it would be delivered again
			})
			switch {
			case err == nil: // the value is removed
			case errors.Is(err, remote.ErrUnknown), errors.Is(err, remote.ErrSettled): // it may be delivered again
			default:
				return err
			}
		}
	})
}
