// Package aside runs fibers of a nursery outside of its limit, for the packages of this module.
//
// A child that waits in an operation of a channel keeps its place under [coir.Nursery.Limit]. If the operation needs
// another child to make progress, and such children occupy all places, none continues. So the fibers that serve
// operations are children of an inner nursery, which has no limit. The fiber that opens the inner nursery needs a place
// to begin, and gives it up while it waits for them.
package aside

import (
	"context"

	"github.com/coir-go/coir"
)

// Fibers are the fibers of an inner nursery, which serve operations. The zero value is ready to use.
type Fibers struct {
	opener coir.Promise[*coir.Fiber]
	begun  coir.Event
}

// Go opens a nursery in a fiber of n, and calls f, which starts fibers in it. It is called once, and does not wait.
func (s *Fibers) Go(n *coir.Nursery, name string, f func(in *coir.Nursery)) {
	s.opener.Resolve(n.Go(name, func(ctx context.Context) error {
		return coir.Run(ctx, func(_ context.Context, in *coir.Nursery) error {
			f(in)
			s.begun.Set()
			return nil
		})
	}))
}

// Wait waits until f has been called. The calling fiber gives up its place meanwhile, so that the fiber that calls f
// gets one.
func (s *Fibers) Wait(ctx context.Context) error {
	if s.begun.IsSet() {
		return nil
	}
	opener, err := s.opener.Wait(ctx) // another fiber is about to start it
	if err == nil {
		_, err = coir.Select(ctx, s.begun.DoneCase(), opener.DoneCase(nil))
	}
	return err
}
