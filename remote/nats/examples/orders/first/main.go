// Command first sends orders to another process, or receives them.
//
//	first            receives orders, until Ctrl-C
//	first tea milk   sends two orders
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	client "github.com/nats-io/nats.go"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/nats"
)

// Order is a value of the channel.
type Order struct{ Item string }

func main() {
	err := coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		conn, err := client.Connect(os.Getenv("NATS_URL"), nats.Options()...) // by default a server on this machine
		if err != nil {
			return err
		}
		transport, err := nats.New(ctx, conn, nats.WithReplicas(1)) // on one server
		if err != nil {
			return err
		}
		orders, err := remote.Durable[Order](ctx, n, transport, "orders", 64, remote.WithMeaning(remote.MeaningStored))
		if err != nil {
			return err
		}
		for _, item := range os.Args[1:] {
			if err := orders.Send(ctx, Order{item}); err != nil {
				return err
			}
			fmt.Println("stored", item)
		}
		for len(os.Args) == 1 && err == nil {
			err = orders.RecvTx(ctx, func(_ context.Context, it *remote.Item[Order]) error {
				fmt.Println("received", it.Value.Item)
				return nil // done: the broker removes the order
			})
		}
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
}
