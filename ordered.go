package coir

import (
	"cmp"
	"context"
	"iter"

	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/race"
)

// Ordered is a queue of tasks that run beside each other and whose results come out in the order in which the tasks were
// given. A task that takes long holds up those behind it, at the exit and not before: they run on, up to the capacity.
//
// It is a channel of started fibers, received from by whoever waits for each in turn.
//
// Spec: CH-51
type Ordered[T any] struct {
	tasks *Chan[*task[T]]
	turn  *Chan[*task[T]] // holds who is next at the exit, if anybody took it and did not get to see its end
}

// task is a fiber and its result.
type task[T any] struct {
	f   *Fiber
	v   T
	err error
}

// NewOrdered makes an ordered queue that holds up to capacity tasks, with [Unlimited] any number. Besides these run the one that is
// waited for at the exit, and one for each caller of Go that waits for room. Of the options only Name is of use.
func NewOrdered[T any](capacity int, opts ...ChanOption) *Ordered[T] {
	if capacity < 0 && capacity != Unlimited {
		panic("coir: NewOrdered: the capacity is 0 or more, or coir.Unlimited")
	}
	set := settingsOf(opts)
	if set.over != Wait || set.undelivered != nil {
		panic("coir: NewOrdered: a task is never dropped, so there is neither Overflow nor OnUndelivered")
	}
	o := &Ordered[T]{tasks: NewChan[*task[T]](capacity, opts...), turn: NewChan[*task[T]](1)}
	_ = o.turn.TrySend(nil) // there is room
	return o
}

// Go starts fn as a fiber of n and queues it. It waits while the queue is full, and gives up the caller's place under [Nursery.Limit]
// meanwhile. If the task cannot be queued any more, because the queue was closed or ctx is over, Go waits until the task has ended and
// returns the error: no task is left behind. A queue that is closed when Go is called starts nothing.
//
// An error of fn is a result like another, and cancels nobody. A panic goes the way of every fiber's panic.
//
// Spec: CH-59
func (o *Ordered[T]) Go(ctx context.Context, n *Nursery, name string, fn func(context.Context) (T, error), opts ...FiberOption) error {
	by := resolve(ctx)
	if err := by.err(); err != nil {
		return err
	}
	if o.tasks.Stats().Closed {
		return o.tasks.tryError(park.Closed)
	}
	t := new(task[T])
	t.f = n.Go(name, func(ctx context.Context) error {
		t.v, t.err = fn(ctx)
		return nil
	}, opts...)
	err := o.tasks.TrySend(t)
	if err == ErrWouldBlock {
		err = away(by.f, func() error { return o.tasks.Send(ctx, t) })
	}
	if err != nil {
		_ = t.f.Wait(Shield(ctx)) // its own error does not count any more
	}
	return err
}

// away is a wait that gives up the caller's place under [Nursery.Limit]: what ends it is the end of a task, which may need that
// place.
//
//go:norace
func away(f *Fiber, wait func() error) error {
	placed := f != nil && f.place && f.simulated
	if placed {
		f.step(Op{Kind: OpPoint})
	}
	race.Disable()
	f.leavePlace()
	race.Enable()
	err := wait()
	if placed {
		f.step(Op{Kind: OpPoint})
	}
	race.Disable()
	f.takePlace(err == nil)
	race.Enable()
	return err
}

// Recv waits for the oldest task to end and returns its result. Whoever calls at the same time gets the next one. If ctx is over
// first, the result stays for whoever comes next. The error of a task and the error of the queue come the same way: where a task may
// return [ErrClosed] itself use All, which ends with the queue.
func (o *Ordered[T]) Recv(ctx context.Context) (T, error) {
	v, _, err := o.recv(ctx)
	return v, err
}

// recv is Recv that also reports whether the error, or its absence, is a task's.
func (o *Ordered[T]) recv(ctx context.Context) (v T, task bool, err error) {
	by := resolve(ctx)
	if err = by.err(); err != nil {
		return v, false, err
	}
	t, err := o.turn.TryRecv() // it overtakes nobody: while somebody waits for it, it is never there
	if err != nil {
		if err = away(by.f, func() error { t, err = o.turn.Recv(ctx); return err }); err != nil {
			return v, false, err
		}
	}
	defer func() { _ = o.turn.TrySend(t) }() // we took the only one: there is room
	if t == nil {
		if t, err = o.tasks.TryRecv(); err == ErrWouldBlock { // who is to give a task may need the place
			err = away(by.f, func() error { t, err = o.tasks.Recv(ctx); return err })
		}
		if err != nil {
			return v, false, err
		}
	}
	var end error
	if _, err = Select(ctx, t.f.Done(&end)); err != nil {
		return v, false, err // t stays at the exit
	}
	v, err, t = t.v, cmp.Or(end, t.err), nil
	return v, true, err
}

// All returns the results in order, until the queue is closed and has nothing left, or ctx is over.
func (o *Ordered[T]) All(ctx context.Context) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			v, task, err := o.recv(ctx)
			if !task || !yield(v, err) {
				return
			}
		}
	}
}

// Close says that no more tasks come. Those that are queued still come out.
func (o *Ordered[T]) Close() bool { return o.tasks.Close() }

// Len returns how many tasks are queued.
func (o *Ordered[T]) Len() int { return o.tasks.Len() }
