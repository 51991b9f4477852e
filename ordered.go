package coir

import (
	"cmp"
	"context"
	"errors"
	"iter"

	"github.com/coir-go/coir/internal/channel"
	"github.com/coir-go/coir/internal/coro"
	"github.com/coir-go/coir/internal/flavor"
	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/xatomic"
)

// Ordered is a queue of tasks that run concurrently. It returns their results in the order in which the tasks were
// added. A slow task delays the results after it, but not the other tasks: up to the capacity, they continue to run.
//
// An Ordered is closed like a channel. [Ordered.Close] is for the side that adds tasks: results of queued tasks can
// still be received. [Ordered.Abort] ends the queue immediately, for a receiver that stops early. Neither stops a
// running task, which is a fiber of its nursery and is cancelled with the nursery.
type Ordered[T any] struct {
	// An Ordered is a channel of started fibers. Receivers wait for the fibers in order.
	tasks       *Chan[*task[T]]
	turn        *Chan[*task[T]] // holds the task that receivers wait for, taken from tasks, or nil
	over        *Chan[struct{}] // closed by Abort
	undelivered func(Result[T])
}

// Result is the result of a task of an [Ordered]. A result that can no longer be received goes to [OnUndelivered].
type Result[T any] struct {
	Value T
	Err   error
}

// task is a fiber and its result. A task that has been taken from the queue belongs to the receiver that took it, which
// delivers or drops it exactly once.
type task[T any] struct {
	f *Fiber
	Result[T]
	state xatomic.Uint32
}

// The states of a task. The fiber stores taskReturned when it has a result; drop stores taskDropped. The second of the
// two to do so passes the result to OnUndelivered.
const (
	taskRuns uint32 = iota
	taskReturned
	taskDropped
)

// NewOrdered makes an ordered queue that holds up to capacity tasks, or any number if the capacity is [Unbounded].
// Besides these, the task that receivers wait for may run, and one task for each caller of Go that waits for room. A
// function passed to [OnUndelivered] must take a [Result]. It is called with each result that can no longer be
// received, by the task itself if the task is still running. A task that panicked has no result: Run panics with its
// panic.
func NewOrdered[T any](capacity int, opts ...ChanOption) *Ordered[T] {
	// Spec: CH-51 (fiber handles arrive in the order sent)
	// Spec: CH-62 (an ordered queue loses no result)
	if capacity < 0 {
		panic("coir: NewOrdered(" + number(capacity) + "): a capacity is 0 or more; write coir.Unbounded for any number of tasks")
	}
	set := settingsOf(opts)
	if set.over != OverflowWait {
		panic("coir: NewOrdered: tasks are never dropped, so WithOverflow is not allowed")
	}
	o := &Ordered[T]{turn: NewChan[*task[T]](1, WithName(set.name)), undelivered: handler[Result[T]](set)}
	o.over = NewChan[struct{}](0, WithName("the abort of "+cmp.Or(set.name, "an ordered queue")))
	own := []ChanOption{WithName(set.name), OnUndelivered(o.drop)}
	if set.timed {
		own = append(own, WithTiming())
	}
	// A list, regardless of the capacity: Close adds more tasks than the capacity allows.
	limit, _, _ := kindOf[*task[T]](capacity, OverflowWait)
	o.tasks = newChan(limit, new(flavor.List[*task[T]]), OverflowWait, settingsOf(own))
	_ = o.turn.TrySend(nil) // there is room
	return o
}

// Go starts fn as a fiber of n and queues it. While the queue is full, Go waits, and gives up the caller's place under
// [Nursery.Limit]. If the queue is already closed or ctx is already done, Go does not start fn, and returns an error.
// If the queue is closed while Go waits for room, the task is still queued, and Go returns nil. If the queue is
// aborted, Go returns an error that is [ErrClosed] without waiting for the task. If ctx ends while Go waits, Go waits
// until the task has ended, and returns the error of ctx. The result of a task that was not queued is passed to
// [OnUndelivered].
//
// An error returned by fn is a result like any other, and cancels nothing. A panic in fn is treated like that of any
// fiber.
func (o *Ordered[T]) Go(ctx context.Context, n *Nursery, name string, fn func(context.Context) (T, error),
	opts ...FiberOption) error {
	// Spec: CH-59 (a task that cannot be queued is joined)
	// Spec: CH-62 (an ordered queue loses no result)
	if n == nil || fn == nil {
		panic(notStarted(n, "Ordered.Go", name))
	}
	by := resolve(ctx)
	by.announce(o.tasks.core.op(policy.Point)) // other fibers may close the queue before this call checks it
	if e := by.ended(); e != nil {
		return e.on(o.tasks.core.verb(sending))
	}
	if o.tasks.Stats().Closed {
		return o.tasks.core.resultErr(sending, park.Closed)
	}
	t := new(task[T])
	set := FiberOption{pc: coro.CallerPC()}
	set.add(opts)
	t.f = n.Go(name, func(ctx context.Context) error {
		t.Value, t.Err = fn(ctx)
		if !t.state.CompareAndSwap(taskRuns, taskReturned) {
			o.handOver(t)
		}
		return nil
	}, set)
	err := o.tasks.TrySend(t)
	if errors.Is(err, ErrWouldBlock) {
		err = away(by.f, func() error { return o.tasks.Send(ctx, t) })
	}
	if err != nil {
		if !errors.Is(err, ErrClosed) {
			_, _ = Select(Shield(ctx), t.f.DoneCase(nil), o.over.RecvCase(nil))
		}
		o.drop(t)
	}
	return err
}

// drop drops a task whose result will not be received. The result is handed over now, or when the task returns.
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

// away calls wait, and gives up the caller's place under [Nursery.Limit] during the call. The end of a task ends the
// wait, and that task may need the place.
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

// Recv waits for the oldest task to end and returns its result. If several callers wait, each gets a different result.
// If ctx ends first, the result is kept for the next caller. The returned error is the task's or the queue's. If a task
// may itself return [ErrClosed], use All, which ends when the queue does.
func (o *Ordered[T]) Recv(ctx context.Context) (T, error) {
	v, _, err := o.recv(ctx)
	return v, err
}

// recv is like Recv, but also reports whether the result comes from a task, rather than from the queue or ctx.
func (o *Ordered[T]) recv(ctx context.Context) (v T, task bool, err error) {
	by := resolve(ctx)
	if e := by.ended(); e != nil {
		return v, false, e.on(o.tasks.core.verb(receiving))
	}
	t, err := o.turn.TryRecv() // this overtakes no receiver: while a receiver waits for the turn, the channel is empty
	if err != nil {
		if err = away(by.f, func() error { t, err = o.turn.Recv(ctx); return err }); err != nil {
			return v, false, err
		}
	}
	defer func() {
		_ = o.turn.TrySend(t) // there is room, because this receiver took the only value
		if t == nil {
			return
		}
		if by.announce(o.over.core.op(policy.Point)); o.over.Stats().Closed {
			o.sweep() // Abort may have called sweep before the send
		}
	}()
	if t == nil {
		if t, err = o.tasks.TryRecv(); errors.Is(err, ErrWouldBlock) { // the fiber that adds tasks may need the place
			err = away(by.f, func() error { t, err = o.tasks.Recv(ctx); return err })
		}
		if err != nil {
			return v, false, err
		}
	}
	var end error
	switch i, _ := Select(ctx, t.f.DoneCase(&end), o.over.RecvCase(nil)); i {
	case -1:
		return v, false, by.cancelled().on(o.tasks.core.verb(receiving)) // t stays in turn
	case 1:
		gone := t
		t = nil
		o.drop(gone)
		return v, false, o.tasks.core.resultErr(receiving, park.Closed)
	}
	v, err, t = t.Value, cmp.Or(end, t.Err), nil
	return v, true, err
}

// sweep drops the task that a receiver left in turn, if there is one. A receiver that has the turn drops its own task.
func (o *Ordered[T]) sweep() {
	t, err := o.turn.TryRecv()
	if err != nil {
		return
	}
	defer o.turn.TrySend(nil) //nolint:errcheck // there is room, because sweep took the only value
	if t != nil {
		o.drop(t)
	}
}

// All returns an iterator over the results in order. The iterator ends when the queue is closed and empty. If it ends
// earlier, because ctx has ended or the queue was aborted, the last pair is the zero value and that error. A loop that
// ends early leaves the queue open, and callers of Go will wait for room: call Abort. Always use both loop variables: a
// loop with only the first one compiles, but ignores the errors, and treats the values that come with them as results.
func (o *Ordered[T]) All(ctx context.Context) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			v, task, err := o.recv(ctx)
			if !task && o.tasks.core.drained(err) || !yield(v, err) || !task {
				return
			}
		}
	}
}

// Close closes the queue to new tasks: later calls of Go return an error that is [ErrClosed]. Results of queued tasks
// can still be received, and so can those of tasks whose Go waits for room; these calls of Go return immediately. After
// that, receivers get ErrClosed. Close reports whether this call closed the queue.
//
// Close is for the side that adds tasks. A receiver that stops receiving should call [Ordered.Abort].
func (o *Ordered[T]) Close() bool {
	// Spec: CH-62 (an ordered queue loses no result)
	o.tasks.core.announce(policy.Close)
	first := o.tasks.core.end(channel.Closed, nil)
	for o.admitWaiting() { // no new callers of Go join those that wait
	}
	return first
}

// admitWaiting queues some of the tasks whose Go waits for room, in order. It reports whether there may be more.
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

// Abort ends the queue immediately: current and later calls of Go and Recv return an error that is [ErrClosed] and
// wraps the cause. Results that have not been received are passed to [OnUndelivered], now or when their tasks return.
// Abort reports whether this call closed the queue. On a queue that was already closed, Abort discards the results that
// have not been received.
func (o *Ordered[T]) Abort(cause error) bool {
	// Spec: CH-62 (an ordered queue loses no result)
	o.tasks.core.announce(policy.Abort)
	first := o.tasks.core.end(channel.Aborted, cause)
	o.over.Close() // after tasks, so that a receiver woken by this reads the cause
	swept := false
	callAll(func() bool {
		if !swept {
			swept = true
			o.sweep()
			return true
		}
		return o.tasks.discard()
	})
	return first
}

// String returns a short description of the queue, like [Chan.String].
func (o *Ordered[T]) String() string {
	return "coir.Ordered[" + typeName[T]() + "](" + o.tasks.core.describe() + ")"
}

// Len returns the number of queued tasks.
func (o *Ordered[T]) Len() int { return o.tasks.Len() }
