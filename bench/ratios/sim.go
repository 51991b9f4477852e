package main

import (
	"context"
	"math"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/sim"
)

// The cost of running a program in a simulation.
//
// The same program runs once by sim.Run, under a random schedule, and once on a runtime with one worker. The program
// performs a few thousand operations. sim.Run makes a world with its own runtime each time, and closes it, while the
// other side's runtime exists already. A random schedule also deliberately switches more often than the real scheduler
// would.
//
// Most simulated programs are much smaller, and sim.Explore runs them thousands of times in one world: sim-schedule
// measures this. sim-run-small measures what the world costs for such a program if it is run only once; there the other
// side makes its runtime and closes it too.
//
// The crowd is expensive for another reason. On the real scheduler the receiver is ready when the senders begin, and no
// sender ever waits. In a random schedule all of them wait at the same time, each in a coroutine of its own, and
// creating the coroutines is most of the cost.

type program func(ctx context.Context, n *coir.Nursery) error

// simulated runs p by sim.Run, each time with a different seed.
func simulated(p program) func() side {
	return func() side {
		seed := uint64(0)
		return side{loop: func(n int) {
			for range n {
				seed++
				if f := sim.Run(seed, inSim(p), sim.WithSteps(math.MaxInt/16)); f != nil {
					panic("the measured program failed: " + f.Error())
				}
			}
		}}
	}
}

func inSim(p program) func(context.Context, *sim.Sim) {
	return func(ctx context.Context, s *sim.Sim) {
		if err := coir.Run(ctx, p); err != nil {
			s.Errorf("%v", err)
		}
	}
}

// explored runs p under n schedules of one exploration.
func explored(p program) func() side {
	return func() side {
		return side{loop: func(n int) {
			if res := sim.Explore(inSim(p), sim.WithStrategy(sim.Random), sim.WithSchedules(n)); res.Failure != nil {
				panic("the measured program failed: " + res.Failure.Error())
			}
		}}
	}
}

// onOneWorker runs p on an existing runtime, from one of its fibers, as the simulation does.
func onOneWorker(p program) func() side {
	return func() side {
		return onRuntime(func(ctx context.Context, _ *coir.Nursery, n int) error {
			for range n {
				if err := coir.Run(ctx, p); err != nil {
					return err
				}
			}
			return nil
		}, coir.WithWorkers(1))
	}
}

// onARuntimeOfItsOwn makes a runtime for p each time.
func onARuntimeOfItsOwn(p program) func() side {
	return func() side {
		return side{loop: func(n int) {
			for range n {
				rt := coir.NewRuntime(coir.WithWorkers(1))
				run(rt, p)
				shut(rt)
			}
		}}
	}
}

// simPings is a program in which two fibers send a value back and forth, 1,000 times.
func simPings(_ context.Context, n *coir.Nursery) error {
	const turns = 1000
	ping, pong := coir.NewChan[int](0), coir.NewChan[int](0)
	half := func(in, out *coir.Chan[int], serve bool) func(context.Context) error {
		return func(ctx context.Context) error {
			v := 0
			for range turns {
				if !serve {
					if err := out.Send(ctx, v); err != nil {
						return err
					}
				}
				var err error
				if v, err = in.Recv(ctx); err != nil {
					return err
				}
				if serve {
					if err := out.Send(ctx, v); err != nil {
						return err
					}
				}
			}
			return nil
		}
	}
	n.Go("server", half(ping, pong, true))
	n.Go("client", half(pong, ping, false))
	return nil
}

// simPipeline is a program that sends 100 values through eight stages.
func simPipeline(ctx context.Context, n *coir.Nursery) error { return pipeline(ctx, n, 100) }

// simSpawns is a program that starts a fiber in a nursery and waits for it, 1,000
// times.
func simSpawns(ctx context.Context, _ *coir.Nursery) error {
	for range 1000 {
		err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			n.Go("child", emptyChild)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// simCrowd is a program of 1,000 fibers that exist at the same time, and each send a value to one fiber.
func simCrowd(ctx context.Context, n *coir.Nursery) error {
	const crowd = 1000
	c := coir.NewChan[int](0)
	for i := range crowd {
		n.Go("sender", func(ctx context.Context) error { return c.Send(ctx, i) })
	}
	for range crowd {
		if _, err := c.Recv(ctx); err != nil {
			return err
		}
	}
	return nil
}

// simSelects is a program in which one fiber takes 1,000 values from two others by Select.
func simSelects(_ context.Context, n *coir.Nursery) error {
	a, b := coir.NewChan[int](0), coir.NewChan[int](0)
	for _, c := range []*coir.Chan[int]{a, b} {
		n.Go("sender", func(ctx context.Context) error {
			for v := range 500 {
				if err := c.Send(ctx, v); err != nil {
					return err
				}
			}
			return nil
		})
	}
	n.Go("receiver", func(ctx context.Context) error {
		var v int
		for range 1000 {
			if _, err := coir.Select(ctx, a.RecvCase(&v), b.RecvCase(&v)); err != nil {
				return err
			}
		}
		return nil
	})
	return nil
}

// simYields is a program of three fibers and about 15 operations.
func simYields(_ context.Context, n *coir.Nursery) error {
	for range 3 {
		n.Go("yields", func(ctx context.Context) error {
			if err := coir.Yield(ctx); err != nil {
				return err
			}
			return coir.Yield(ctx)
		})
	}
	return nil
}
