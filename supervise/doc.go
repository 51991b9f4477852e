// Package supervise runs functions, called children, and restarts those that fail.
//
//	app := supervise.New([]supervise.Child{
//		{Name: "db", Run: db.Run},
//		{Name: "cache", Run: cache.Run},
//		{Name: "warm up", Run: warmUp, Restart: supervise.RestartTransient},
//	}, supervise.WithName("app"), supervise.WithStrategy(supervise.StrategyRestForOne),
//		supervise.WithIntensity(5, time.Minute))
//
//	err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
//		n.Go("health", func(ctx context.Context) error {
//			for e, err := range app.Events().All(ctx) {
//				if err != nil {
//					return err
//				}
//				log.Println(e)
//			}
//			return nil
//		})
//		err := app.Run(ctx)
//		n.Cancel(nil)
//		return err
//	})
//
// # How a supervisor works
//
// [Supervisor.Run] starts the children in the order given, each in a fiber of its own, and restarts those that end,
// according to their [Restart]. A panic of a child is a failure like any other; its error is a [*coir.PanicError] with
// the stack. The [Strategy] says which other children are stopped and restarted with it. Before a restart the
// supervisor waits for a partly random time, which grows with each failure in a row; under package sim the schedule
// chooses it.
//
// If there are more restarts within a period than [WithIntensity] allows, the supervisor stops its children and returns
// a [*GaveUpError]. A supervisor can be a child of another one, with its Run method as the child's function. When the
// inner supervisor gives up, the outer one restarts it.
//
// Run returns nil when all children have ended for good. If its context ends, it stops the children one by one, in the
// reverse of the order in which they were started, and returns when the last one has ended. To stop a child, the
// supervisor cancels its context and waits for it, even if the child ignores its context.
//
// The end of a run of a child is ordered before the child's next run.
package supervise
