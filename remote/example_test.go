package remote_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/memory"
)

// Two processes, which are parts of this example. The receiver records the IDs of the values whose effect is done, so
// that a value that is delivered twice has one effect.
func ExampleDurable() {
	broker := memory.New()
	sender, receiver := broker.Node("sender"), broker.Node("receiver")
	err := coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		n.Go("sender", func(ctx context.Context) error {
			greetings, err := remote.Durable[string](ctx, n, sender, "greetings", 8)
			if err != nil {
				return err
			}
			defer greetings.Leave()
			for _, text := range []string{"hello", "good bye"} {
				if err := greetings.Send(ctx, text); err != nil { // nil if the text is stored
					return err
				}
			}
			return greetings.Close(ctx)
		})
		greetings, err := remote.Durable[string](ctx, n, receiver, "greetings", 8)
		if err != nil {
			return err
		}
		defer greetings.Leave()
		marks := map[remote.ID]bool{} // a table of a database
		for {
			err := greetings.RecvTx(ctx, func(_ context.Context, it *remote.Item[string]) error {
				if !marks[it.ID] {
					marks[it.ID] = true
					fmt.Println(it.Value)
				}
				return nil
			})
			if errors.Is(err, coir.ErrClosed) {
				return nil
			}
			if err != nil {
				return err
			}
		}
	})
	fmt.Println(err)
	// Output:
	// hello
	// good bye
	// <nil>
}

// A select receives from a remote channel and from a local one.
func ExampleChan_RecvCase() {
	node := memory.New().Node("only")
	_ = coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		jobs, err := remote.Durable[string](ctx, n, node, "jobs", 1)
		if err != nil {
			return err
		}
		defer jobs.Leave()
		if err := jobs.Send(ctx, "clean up"); err != nil {
			return err
		}
		stop := coir.NewEvent()
		var job *remote.Item[string]
		if i, err := coir.Select(ctx, stop.DoneCase(), jobs.RecvCase(&job)); err != nil || i == 0 {
			return err
		}
		job.Hold(ctx) // binds the job to this fiber
		fmt.Println(job.Value)
		return job.Ack(ctx)
	})
	// Output: clean up
}

// A value that a receiver cannot use becomes a dead letter.
func ExampleItem_Reject() {
	node := memory.New().Node("only")
	_ = coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		jobs, err := remote.Durable[string](ctx, n, node, "jobs", 1)
		if err != nil {
			return err
		}
		defer jobs.Leave()
		dead, err := remote.Durable[remote.DeadLetter](ctx, n, node, remote.DeadName("jobs"), remote.DeadCapacity)
		if err != nil {
			return err
		}
		defer dead.Leave()
		if err := jobs.Send(ctx, "square the circle"); err != nil {
			return err
		}
		job, err := jobs.Recv(ctx)
		if err != nil {
			return err
		}
		if err := job.Reject(ctx, "not possible"); err != nil {
			return err
		}
		letter, err := dead.Recv(ctx)
		if err != nil {
			return err
		}
		fmt.Printf("%s: %s\n", letter.Value.Data, letter.Value.Reason)
		return letter.Ack(ctx)
	})
	// Output: "square the circle": not possible
}

// An operator lists the dead letters. One of them is tried again, because its cause is gone.
func ExampleChan_AllDead() {
	node := memory.New().Node("only")
	_ = coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		jobs, err := remote.Durable[string](ctx, n, node, "jobs", 2)
		if err != nil {
			return err
		}
		defer jobs.Leave()
		for job, reason := range map[string]string{"print": "no paper", "square the circle": "not possible"} {
			if err := jobs.Send(ctx, job); err != nil {
				return err
			}
			it, err := jobs.Recv(ctx)
			if err != nil {
				return err
			}
			if err := it.Reject(ctx, reason); err != nil {
				return err
			}
		}
		for it, err := range jobs.AllDead(ctx) {
			if err != nil {
				return err
			}
			fmt.Printf("%s: %s\n", it.Value.Data, it.Value.Reason)
			if it.Value.Reason == "no paper" {
				if err := jobs.Revive(ctx, it); err != nil {
					return err
				}
			}
		}
		again, err := jobs.Recv(ctx)
		if err != nil {
			return err
		}
		fmt.Println("again:", again.Value)
		return again.Ack(ctx)
	})
	// Unordered output:
	// "print": no paper
	// "square the circle": not possible
	// again: print
}

// A volatile channel stores nothing: a sent value is in the buffer of a receiving process.
func ExampleVolatile() {
	broker := memory.New()
	_ = coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		from, err := remote.Volatile[int](ctx, n, broker.Node("sensor"), "temperature", 4)
		if err != nil {
			return err
		}
		defer from.Leave()
		to, err := remote.Volatile[int](ctx, n, broker.Node("display"), "temperature", 4)
		if err != nil {
			return err
		}
		defer to.Leave()
		n.Go("sensor", func(ctx context.Context) error { return from.Send(ctx, 21) })
		it, err := to.Recv(ctx)
		if err != nil {
			return err
		}
		fmt.Println(it.Value)
		return nil
	})
	// Output: 21
}
