// Package pubsub passes values from publishers to many subscribers. A [Broadcast] passes every value to every
// subscriber. A [Latest] holds a value that changes, and passes on the newest.
//
//	prices := pubsub.NewBroadcast[Price](coir.WithName("prices"))
//	...
//	n.Go("chart", func(ctx context.Context) error {
//		sub := prices.Subscribe(64, coir.WithOverflow(coir.OverflowDropOldest))
//		defer sub.Close()
//		for p, err := range sub.All(ctx) {
//			if err != nil {
//				return err
//			}
//			draw(p)
//		}
//		return nil
//	})
//	...
//	err := prices.Publish(ctx, p)
//
// Each subscriber has its own channel, with its own capacity and overflow policy. The policy decides whether a slow
// subscriber makes publishers wait or loses values, which are counted.
package pubsub
