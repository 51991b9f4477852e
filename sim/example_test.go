package sim_test

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/sim"
)

// counter is a program with a mistake: each of two fibers takes the count out of a channel to look at it, puts it back,
// and later replaces it by one more than what it saw.
func counter(ctx context.Context, s *sim.Sim) {
	count := coir.NewChan[int](1, coir.WithName("count"))
	_ = count.Send(ctx, 0)
	_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
		for i := range 2 {
			n.Go("add", func(ctx context.Context) error {
				seen, err := count.Recv(ctx)
				if err != nil {
					return err
				}
				if err := count.Send(ctx, seen); err != nil {
					return err
				}
				if _, err := count.Recv(ctx); err != nil {
					return err
				}
				return count.Send(ctx, seen+1)
			}, coir.WithIndex(i))
		}
		return nil
	})
	if n, _ := count.TryRecv(); n != 2 {
		s.Errorf("counted to %d", n)
	}
}

// Two fibers elect an owner by an atomic, in two steps where one is needed. There is no operation of coir between the
// steps, so a Point tells sim that another fiber may run in between.
func ExamplePoint() {
	elect := func(between func(ctx context.Context)) func(context.Context, *sim.Sim) {
		return func(ctx context.Context, s *sim.Sim) {
			var owner, owners atomic.Int32
			_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
				for i := range 2 {
					n.Go("candidate", func(ctx context.Context) error {
						if owner.Load() == 0 {
							between(ctx)
							owner.Store(int32(i + 1))
							owners.Add(1)
						}
						return nil
					}, coir.WithIndex(i))
				}
				return nil
			})
			if n := owners.Load(); n != 1 {
				s.Errorf("%d owners", n)
			}
		}
	}
	all := sim.WithStrategy(func(uint64) sim.Strategy { return sim.Exhaustive(2) })
	res := sim.Explore(elect(func(context.Context) {}), all)
	fmt.Println(res.Failure == nil, res.Covered)
	res = sim.Explore(elect(coir.Point), all)
	fmt.Println(res.Failure.Text)
	// Output:
	// true all orders of coir operations with at most 2 preemptions; code between two operations is one step
	// 2 owners
}

// A schedule from outside: here, a switch wherever one is possible. See [sim.Drawn] for how to use it with rapid.
func ExampleDrawn() {
	f := sim.Drawn(func(n int) int { return 1 }, counter)
	fmt.Println(f.Kind, f.Text)
	f = sim.Drawn(func(n int) int { return 0 }, counter) // no switch: one fiber after the other
	fmt.Println(f)
	// Output:
	// error counted to 1
	// <nil>
}

// A schedule from bytes that Go's fuzzer has generated.
func ExampleBytes() {
	for _, data := range []string{"", "022001"} {
		if f := sim.Drawn(sim.Bytes([]byte(data)), counter); f != nil {
			fmt.Printf("%q: %s, %s\n", data, f.Kind, f.Text)
		} else {
			fmt.Printf("%q: passes\n", data)
		}
	}
	// Output:
	// "": passes
	// "022001": error, counted to 1
}

// A failing schedule is found, made smaller, and can be run again.
func ExampleExplore() {
	res := sim.Explore(counter)
	fmt.Println(res.Failure.Kind, res.Failure.Text)
	again, err := sim.Replay(res.Failure.Token, counter)
	fmt.Println(again.Text, err)
	// Output:
	// error counted to 1
	// counted to 1 <nil>
}
