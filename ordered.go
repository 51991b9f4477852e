package coir

import (
	"cmp"
	"context"
	"errors"
	"iter"

	"github.com/coir-go/coir/internal/channel"
	"github.com/coir-go/coir/internal/flavor"
	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/xatomic"
)

// Ordered is a queue of tasks that run beside each other and whose results come out in the order in which the tasks were
// given. A task that takes long holds up those behind it, at the exit and not before: they run on, up to the capacity.
//
// It ends as a channel does. [Ordered.Close] belongs to the side that gives tasks: what has been given still comes out.
// [Ordered.Abort] ends the queue at once, for a receiver that leaves early. Neither stops a task that runs: it is a
// fiber of its nursery, and is cancelled with that.
type Ordered[T any] struct {
	// It is a channel of started fibers, received from by whoever waits for each in turn.
	tasks       *Chan[*task[T]]
	turn        *Chan[*task[T]] // holds who is next at the exit, if anybody took it and did not get to see its end
	over        *Chan[struct{}] // closed by Abort
	undelivered func(Result[T])
}

// Result is what a task of an [Ordered] has returned. One that nobody receives any more is given to [OnUndelivered].
type Result[T any] struct {
	Value T
	Err   error
}

// task is a fiber and its result. What has been taken out of the queue belongs to who took it: it is delivered or
// dropped, once.
type task[T any] struct {
	f *Fiber
	Result[T]
	state xatomic.Uint32
}

// The states of a task. Of the fiber, which has a result, and whoever has dropped the task, the second to come hands
// the result over.
const (
	taskRuns uint32 = iota
	taskReturned
	taskDropped
)

// NewOrdered makes an ordered queue that holds up to capacity tasks, with [Unlimited] any number. Besides these run the
// one that is waited for at the exit, and one for each caller of Go that waits for room. A function for [OnUndelivered]
// takes a [Result]; it is called with each result that cannot be received any more, by the task itself if it is still
// running then. A task that has panicked has none: its panic comes out of Run.
func NewOrdered[T any](capacity int, opts ...ChanOption) *Ordered[T] {
	// Spec: CH-51 (fiber handles arrive in the order sent)
	// Spec: CH-62 (an ordered queue loses no result)
	if capacity < 0 && capacity != Unlimited {
		panic("coir: NewOrdered: the capacity is 0 or more, or coir.Unlimited")
	}
	set := settingsOf(opts)
	if set.over != Wait {
		panic("coir: NewOrdered: a task is never dropped for want of room, so there is no Overflow")
	}
	o := &Ordered[T]{turn: NewChan[*task[T]](1, Name(set.name)), undelivered: handler[Result[T]](set)}
	o.over = NewChan[struct{}](0, Name("the abort of "+cmp.Or(set.name, "an ordered queue")))
	own := []ChanOption{Name(set.name), OnUndelivered(o.drop)}
	if set.timed {
		own = append(own, Timed())
	}
	// A list, whatever the capacity: on a close it is given more than it has room for.
	limit, _, _ := kindOf[*task[T]](capacity, Wait)
	o.tasks = newChan(limit, new(flavor.List[*task[T]]), Wait, settingsOf(own))
	_ = o.turn.TrySend(nil) // there is room
	return o
}

// Go starts fn as a fiber of n and queues it. It waits while the queue is full, and gives up the caller's place under
// [Nursery.Limit] meanwhile. A queue that is closed when Go is called starts nothing. If the queue is closed while Go
// waits for room the task is queued all the same, and Go returns nil; if it is aborted, Go returns an error that is
// [ErrClosed] and does not wait for the task. If ctx ends while Go waits, Go waits until the task has ended, and returns
// ctx's error; if it has ended before, nothing is started. A result that is not queued goes to [OnUndelivered].
//
// An error of fn is a result like another, and cancels nobody. A panic goes the way of every fiber's panic.
func (o *Ordered[T]) Go(ctx context.Context, n *Nursery, name string, fn func(context.Context) (T, error), opts ...FiberOption) error {
	// Spec: CH-59 (a task that cannot be queued is joined)
	// Spec: CH-62 (an ordered queue loses no result)
	by := resolve(ctx)
	if e := by.ended(); e != nil {
		return e.on(o.tasks.core.verb(sending))
	}
	if o.tasks.Stats().Closed {
		return o.tasks.core.resultErr(sending, park.Closed)
	}
	t := new(task[T])
	t.f = n.Go(name, func(ctx context.Context) error {
		t.Value, t.Err = fn(ctx)
		if !t.state.CompareAndSwap(taskRuns, taskReturned) {
			o.handOver(t)
		}
		return nil
	}, opts...)
	err := o.tasks.TrySend(t)
	if errors.Is(err, ErrWouldBlock) {
		err = away(by.f, func() error { return o.tasks.Send(ctx, t) })
	}
	if err != nil {
		if !errors.Is(err, ErrClosed) {
			_, _ = Select(Shield(ctx), t.f.Done(nil), o.over.RecvCase(nil))
		}
		o.drop(t)
	}
	return err
}

// drop gives up a task whose result nobody will receive: it is handed over now, or when the task returns.
func (o *Ordered[T]) drop(t *task[T]) {
	if !t.state.CompareAndSwap(taskRuns, taskDropped) {
		o.handOver(t)
	}
}

func (o *Ordered[T]) handOver(t *task[T]) {
	if o.undelivered != nil {
		o.undelivered(t.Result)
	}
}

// away is a wait that gives up the caller's place under [Nursery.Limit]: what ends it is the end of a task, which may need that
// place.
//
//go:norace
func away(f *Fiber, wait func() error) error {
	placed := f != nil && f.place && f.simulated
	if placed {
		f.step(policy.Op{Kind: policy.Point})
	}
	race.Disable()
	f.leavePlace()
	race.Enable()
	err := wait()
	if placed {
		f.step(policy.Op{Kind: policy.Point})
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
	if e := by.ended(); e != nil {
		return v, false, e.on(o.tasks.core.verb(receiving))
	}
	t, err := o.turn.TryRecv() // it overtakes nobody: while somebody waits for it, it is never there
	if err != nil {
		if err = away(by.f, func() error { t, err = o.turn.Recv(ctx); return err }); err != nil {
			return v, false, err
		}
	}
	defer func() {
		_ = o.turn.TrySend(t) // we took the only one: there is room
		if t != nil && o.over.Stats().Closed {
			o.sweep() // Abort may have looked before
		}
	}()
	if t == nil {
		if t, err = o.tasks.TryRecv(); errors.Is(err, ErrWouldBlock) { // who is to give a task may need the place
			err = away(by.f, func() error { t, err = o.tasks.Recv(ctx); return err })
		}
		if err != nil {
			return v, false, err
		}
	}
	var end error
	switch i, _ := Select(ctx, t.f.Done(&end), o.over.RecvCase(nil)); i {
	case -1:
		return v, false, by.cancelled().on(o.tasks.core.verb(receiving)) // t stays at the exit
	case 1:
		gone := t
		t = nil
		o.drop(gone)
		return v, false, o.tasks.core.resultErr(receiving, park.Closed)
	}
	v, err, t = t.Value, cmp.Or(end, t.Err), nil
	return v, true, err
}

// sweep drops the task that was left at the exit, if there is one. Whoever is at the exit sees to it itself.
func (o *Ordered[T]) sweep() {
	t, err := o.turn.TryRecv()
	if err != nil {
		return
	}
	defer o.turn.TrySend(nil) //nolint:errcheck // we took the only one: there is room
	if t != nil {
		o.drop(t)
	}
}

// All returns the results in order, until the queue is closed and has nothing left, was aborted, or ctx is over. A loop
// that ends early leaves the queue as it is, and whoever gives tasks will wait for room: call Abort.
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

// Close says that no more tasks come: a later Go returns an error that is [ErrClosed]. Those that are queued still come
// out, and so do those whose Go waits for room, which returns at once. Then receivers get ErrClosed. It reports whether
// this call has closed the queue.
//
// It belongs to the side that gives tasks. A receiver that leaves calls [Ordered.Abort].
func (o *Ordered[T]) Close() bool {
	// Spec: CH-62 (an ordered queue loses no result)
	o.tasks.core.announce(policy.Close)
	first := o.tasks.core.end(channel.Closed, nil)
	for o.admitWaiting() { // no more come
	}
	return first
}

// admitWaiting queues some of the tasks that wait for room, in their order. It reports whether there may be more.
//
//go:norace
func (o *Ordered[T]) admitWaiting() bool {
	var batch channel.Wakes
	race.Disable()
	o.tasks.ch.Lock()
	o.tasks.ch.AdmitWaiting(&batch)
	more := batch.Full()
	o.tasks.core.unlockBatch(&batch)
	race.Enable()
	return more
}

// Abort ends the queue at once: whoever waits in Go or Recv, or comes later, gets an error that is [ErrClosed] and
// wraps the cause. Results that have not been received go to [OnUndelivered], now or when their tasks return. It
// reports whether this call has closed the queue. On one that was closed before it discards what has not been received.
func (o *Ordered[T]) Abort(cause error) bool {
	// Spec: CH-62 (an ordered queue loses no result)
	o.tasks.core.announce(policy.Abort)
	first := o.tasks.core.end(channel.Aborted, cause)
	o.over.core.end(channel.Closed, nil) // after that: who is woken by it asks for the cause
	swept := false
	toEnd(func() bool {
		if !swept {
			swept = true
			o.sweep()
			return true
		}
		return o.tasks.discard()
	})
	return first
}

// String is like [Chan.String].
func (o *Ordered[T]) String() string {
	return "coir.Ordered[" + typeName[T]() + "](" + o.tasks.core.describe() + ")"
}

// Len returns how many tasks are queued.
func (o *Ordered[T]) Len() int { return o.tasks.Len() }
