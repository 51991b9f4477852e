package locks

import (
	"context"

	"github.com/coir-go/coir"
)

// Once performs an action once; if the action fails, the next caller tries again.
//
// The zero value is ready to use and has no name. A Once must not be copied after first use.
type Once struct {
	m    Mutex
	done coir.Event
}

// NewOnce returns a Once whose action has not run. [coir.WithName] gives it a name, which reports show.
func NewOnce(opts ...coir.NameOption) *Once {
	o := new(Once)
	o.m.q.Init(opts...)
	return o
}

// Do calls fn unless the fn of an earlier Do has returned nil. While one fiber or goroutine calls fn, others wait. If
// fn returns an error or panics, so does Do, and the next waiter calls its own fn. Do returns ctx's error if ctx has
// ended, or ends while Do waits. fn must not call Do of the same Once.
//
// The return of fn is ordered before the return of every Do that returns nil.
func (o *Once) Do(ctx context.Context, fn func(ctx context.Context) error) error {
	if err := coir.Ended(ctx); err != nil {
		return err
	}
	if o.done.IsSet() {
		return nil
	}
	if err := o.m.Lock(ctx); err != nil {
		return err
	}
	defer o.m.Unlock()
	if o.done.IsSet() {
		return nil
	}
	if fn == nil {
		panic("locks: Do(nil) of " + named("a Once", &o.m.q) + ": there is nothing to call")
	}
	if err := fn(ctx); err != nil {
		return err
	}
	o.done.Set()
	return nil
}

// String returns a short description of o.
func (o *Once) String() string {
	if o.done.IsSet() {
		return "locks.Once(" + o.m.q.String() + ", done)"
	}
	return "locks.Once(" + o.m.q.String() + ", not done)"
}
