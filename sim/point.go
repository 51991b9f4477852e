package sim

import (
	"context"

	"github.com/coir-go/coir"
)

// Point is a place where other fibers may go first, as before an operation. It is for code that shares memory between
// operations of coir, by atomics or under a mutex: what lies between two operations is one step of a schedule, and a
// Point makes it two.
//
//	if owner.Load() == 0 {
//		sim.Point(ctx)
//		owner.Store(me) // two may come here
//	}
//
// For [DPOR] a Point is in conflict with everything: what follows it may be seen by anybody.
//
// Outside of a simulation it does nothing, and costs a look at a flag. Package sim brings package testing and flags
// along, so code that is not in a test writes coir.Announce(ctx, coir.Op{Kind: coir.OpPoint}, nil), which is what Point
// does. Do not call it while a native mutex is held that other fibers take: they would wait outside of coir.
func Point(ctx context.Context) { coir.Announce(ctx, coir.Op{Kind: coir.OpPoint}, nil) }
