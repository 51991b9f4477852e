// Package pace provides a [Ticker], a rate [Limiter] and [Retry] for fibers and goroutines.
//
//	err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
//		api := pace.NewLimiter(time.Second/20, 5, coir.WithName("api")) // 20 a second, 5 at once
//		n.Go("heartbeat", func(ctx context.Context) error {
//			beat := pace.NewTicker(time.Second, coir.WithName("heartbeat"))
//			for {
//				if _, err := beat.Wait(ctx); err != nil {
//					return err
//				}
//				if err := ping(ctx); err != nil {
//					return err
//				}
//			}
//		})
//		for _, r := range requests {
//			if err := api.Wait(ctx); err != nil {
//				return err
//			}
//			n.Go("call", func(ctx context.Context) error { return call(ctx, r) })
//		}
//		return nil
//	})
//
// All of them use the clock of the caller's runtime, which is virtual in a simulation by package sim and in a runtime
// with a [coir.Clock]. Use each Ticker and Limiter only in one runtime, and in a simulation only in one schedule,
// because every runtime and every schedule has its own clock: create them in the function that sim runs. They hold no
// timer while no caller waits, so you need not stop them.
//
// They do not order memory. Two fibers that write the same variable, each after a Wait of the same Limiter, have a data
// race, and the race detector reports it.
package pace
