package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote/internal/attempt"
)

// Part is a part of a program that knows whether it can be used now: a [Transport], a [Chan], a [Promise], or a desk
// of package ticket.
type Part interface {
	// Ready returns nil if the part can be used now. Otherwise the error names what cannot be used, and says why.
	Ready(ctx context.Context) error
}

// Ready asks all parts at the same time, and returns the errors of those that cannot be used now, or nil. It is for
// the readiness check of an orchestrator:
//
//	http.HandleFunc("/ready", func(w http.ResponseWriter, r *http.Request) {
//		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
//		defer cancel()
//		if err := remote.Ready(ctx, transport, orders); err != nil {
//			http.Error(w, err.Error(), http.StatusServiceUnavailable)
//		}
//	})
//
// Ready changes nothing, and makes each request once. A broker that gives no answer within five seconds, or before ctx
// ends, cannot be used.
//
// Do not use Ready to decide whether a process is alive: to restart the process does not bring back the broker.
func Ready(ctx context.Context, parts ...Part) error {
	errs := make([]error, len(parts))
	err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		for i, p := range parts {
			n.Go("ready", func(ctx context.Context) error {
				errs[i] = attempt.Within(ctx, openTime, p.Ready)
				return nil
			}, coir.WithIndex(i))
		}
		return nil
	})
	return cmp.Or(errors.Join(errs...), err)
}

// Ready implements [Part]. It asks the broker about the channel, and about the channel of its dead letters. The
// channel cannot be used either if this end was left, or if receiving has failed for good. A full channel can be used,
// and so can one whose dead letters are full: a process that mends that must be able to start.
func (c *Chan[T]) Ready(ctx context.Context) error {
	c.cond.Lock()
	err := cmp.Or(c.left, c.failed)
	c.cond.Unlock()
	if err == nil && !c.stored {
		err = c.t.Ready(ctx)
	}
	if err == nil && c.stored {
		if _, err = c.t.Len(ctx, c.name); err == nil {
			err = c.askDead(ctx)
		}
		c.heard(ctx, err)
	}
	if err != nil {
		return fmt.Errorf("remote: channel %s: %w", c.name, err)
	}
	return nil
}

// Ready implements [Part]. It asks the broker for the result.
func (p *Promise[T]) Ready(ctx context.Context) error {
	if _, err := p.t.Get(ctx, storeKey(p.key)); err != nil {
		return fmt.Errorf("remote: promise %s: %w", p.key, err)
	}
	return nil
}
