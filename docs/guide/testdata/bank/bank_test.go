// Package bank is the program of README and of the guide to locks. All of it is in a test file: in other files of this
// module, sim takes code for the library's.
package bank

import (
	"context"
	"testing"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/locks"
	"github.com/coir-go/coir/sim"
)

type account struct {
	lock    *locks.Mutex
	balance int
}

func transfer(ctx context.Context, from, to *account, amount int) error {
	if err := from.lock.Lock(ctx); err != nil {
		return err
	}
	defer from.lock.Unlock()
	if err := to.lock.Lock(ctx); err != nil {
		return err
	}
	defer to.lock.Unlock()
	from.balance -= amount
	to.balance += amount
	return nil
}

func transferBothWays(ctx context.Context, _ *sim.Sim) {
	a := &account{lock: locks.NewMutex(coir.WithName("a")), balance: 100}
	b := &account{lock: locks.NewMutex(coir.WithName("b")), balance: 100}
	_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		n.Go("there", func(ctx context.Context) error { return transfer(ctx, a, b, 10) })
		n.Go("back", func(ctx context.Context) error { return transfer(ctx, b, a, 20) })
		return nil
	})
}

func TestTransfer(t *testing.T) { sim.Test(t, transferBothWays) }
