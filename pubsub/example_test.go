package pubsub_test

import (
	"context"
	"fmt"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/pubsub"
)

// Two subscribers get the prices. The second is slow, and misses prices instead of making the publisher wait: it gets
// the newest two.
func ExampleBroadcast() {
	prices := pubsub.NewBroadcast[int](coir.WithName("prices"))
	book := prices.Subscribe(0)
	chart := prices.Subscribe(2, coir.WithOverflow(coir.OverflowDropOldest))
	_ = coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		n.Go("book", func(ctx context.Context) error {
			for p, err := range book.All(ctx) {
				if err != nil {
					return err
				}
				fmt.Println("book", p)
			}
			return nil
		})
		n.Go("publisher", func(ctx context.Context) error {
			defer prices.Close()
			for p := range 4 {
				if err := prices.Publish(ctx, p); err != nil {
					return err
				}
			}
			return nil
		})
		return nil
	})
	for p, err := range chart.All(context.Background()) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("chart", p)
	}
	fmt.Println("chart has missed", chart.Lagged())
	// Output:
	// book 0
	// book 1
	// book 2
	// book 3
	// chart 2
	// chart 3
	// chart has missed 2
}

// A watcher first gets the current value. It misses values that are replaced before it receives them, but not the last
// one.
func ExampleLatest() {
	level := pubsub.NewLatest("info", coir.WithName("log level"))
	watcher := level.Watch()
	defer watcher.Close()
	ctx := context.Background()
	l, _ := watcher.Recv(ctx)
	fmt.Println(l)

	_ = level.Set("warn")
	_ = level.Set("debug")
	level.Close()
	for l, err := range watcher.All(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(l)
	}
	fmt.Println(level.Get())
	// Output:
	// info
	// debug
	// debug
}

// A select receives from two subscriptions.
func ExampleSubscription_RecvCase() {
	prices := pubsub.NewBroadcast[int]()
	limit := pubsub.NewLatest(10)
	sub, limits := prices.Subscribe(8), limit.Watch()
	_ = coir.Run(context.Background(), func(ctx context.Context, _ *coir.Nursery) error {
		for p := range 2 {
			if err := prices.Publish(ctx, 9+p); err != nil {
				return err
			}
		}
		for range 3 {
			var price, most int
			at, err := coir.SelectPriority(ctx, limits.RecvCase(&most), sub.RecvCase(&price))
			if err != nil {
				return err
			}
			if at == 0 {
				fmt.Println("at most", most)
			} else {
				fmt.Println("price", price)
			}
		}
		return nil
	})
	// Output:
	// at most 10
	// price 9
	// price 10
}
