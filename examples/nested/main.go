// Nested shows a program that deadlocks in a bounded worker pool: tasks start other tasks in the same pool and wait for
// them.
//
// There are 16 places and 100 tasks. Each task starts 100 children under the same limit and waits for them. In a pool
// of 16 workers the first 16 tasks would occupy every worker while they wait for children that can never start. Here a
// task that waits gives up its place, so the program ends.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/coir-go/coir"
)

const (
	places   = 16
	tasks    = 100
	children = 100 // started by each task
)

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(out io.Writer) error {
	fmt.Fprintf(out, "%d places, %d tasks, each waits for %d children under the same limit\n", places, tasks, children)
	var running, waiting gauge
	err := coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		n.Limit(places)
		for i := range tasks {
			n.Go("task", func(ctx context.Context) error {
				running.add(1)
				defer running.add(-1)
				return task(ctx, n, &running, &waiting)
			}, coir.WithIndex(i))
		}
		return nil // Run waits for all tasks
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "ended: at most %d ran at once, while up to %d tasks waited\n", running.most.Load(), waiting.most.Load())
	return nil
}

// task starts its children and waits for each of them. It counts as running except while it waits.
func task(ctx context.Context, n *coir.Nursery, running, waiting *gauge) error {
	fibers := make([]*coir.Fiber, children)
	for i := range fibers {
		fibers[i] = n.Go("child", func(ctx context.Context) error {
			running.add(1)
			defer running.add(-1)
			return coir.Yield(ctx) // stands for the child's work
		}, coir.WithIndex(i))
	}
	waiting.add(1)
	defer waiting.add(-1)
	for _, f := range fibers {
		running.add(-1)
		err := f.Wait(ctx) // gives up the task's place while it waits, and takes one again before it returns
		running.add(1)
		if err != nil {
			return err
		}
	}
	return nil
}

// gauge counts up and down, and keeps the maximum.
type gauge struct{ now, most atomic.Int64 }

func (g *gauge) add(d int64) {
	now := g.now.Add(d)
	for most := g.most.Load(); now > most && !g.most.CompareAndSwap(most, now); {
		most = g.most.Load()
	}
}
