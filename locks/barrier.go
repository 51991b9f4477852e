package locks

import (
	"context"
	"fmt"

	"github.com/coir-go/coir"
)

// Barrier makes a fixed number of fibers and goroutines wait for each other. When all have arrived they continue, and
// the barrier can be used again.
type Barrier struct {
	cond  *coir.Cond
	size  int
	came  int
	round int
}

// NewBarrier returns a barrier for size fibers and goroutines. [coir.WithName] gives it a name, which reports show.
func NewBarrier(size int, opts ...coir.NameOption) *Barrier {
	if size < 1 {
		panic(fmt.Sprintf("locks: NewBarrier(%d): the size must be 1 or more", size))
	}
	return &Barrier{cond: coir.NewCond(opts...), size: size}
}

// Wait waits until all have arrived. It returns the number of the round, counted from 0, and whether the caller was the
// last to arrive. If ctx has ended, or ends first, Wait returns ctx's error, and the caller does not count as arrived.
//
// All calls of Wait of a round are ordered before the return of each of them.
func (b *Barrier) Wait(ctx context.Context) (round int, last bool, err error) {
	if b.cond == nil {
		panic("locks: use of a Barrier that was not made by NewBarrier")
	}
	b.cond.Lock()
	defer b.cond.Unlock()
	if err := coir.Ended(ctx); err != nil {
		return 0, false, err
	}
	round = b.round
	if b.came++; b.came == b.size {
		b.came = 0
		b.round++
		b.cond.Broadcast()
		return round, true, nil
	}
	for b.round == round {
		if err := b.cond.Wait(ctx); err != nil && b.round == round {
			b.came--
			return round, false, err
		}
	}
	return round, false, nil
}

// String returns a short description of b.
func (b *Barrier) String() string {
	return fmt.Sprintf("locks.Barrier(%v, for %d)", b.cond, b.size)
}
