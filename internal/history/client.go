package history

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/model"
	"github.com/coir-go/coir/internal/park"
)

// client performs one operation after the other, as orders tell it.
type client struct {
	inbox *coir.Chan[*order]
	fiber *coir.Fiber             // nil for the goroutine, and for the player
	leave context.CancelCauseFunc // ends the goroutine's context
	busy  *order
}

// order is an operation for a client to perform.
type order struct {
	step
	op    *model.Op
	on    *coir.Chan[int] // the channel of any operation except a select
	cases []coir.Case     // the cases of a select
	slots []int           // where the cases receive
	want  *model.Result   // set once the model says that the operation has ended

	begun  atomic.Bool // cancel is set
	cancel context.CancelCauseFunc
	done   atomic.Bool // got and err are set
	got    model.Result
	err    error
}

// enter starts client i.
func (h *history) enter(n *coir.Nursery, i int) {
	c := &client{inbox: coir.NewChan[*order](1)}
	h.clients = append(h.clients, c)
	switch {
	case i < fibers:
		c.fiber = n.Go("client", func(ctx context.Context) error {
			c.work(ctx)
			return nil
		}, coir.WithIndex(i))
	case i == goroutine:
		var ctx context.Context
		ctx, c.leave = context.WithCancelCause(context.Background())
		h.threads.Go(func() { c.work(ctx) })
	}
}

// work does the client's operations until it is dismissed.
func (c *client) work(ctx context.Context) {
	for o, err := range c.inbox.All(ctx) {
		if err != nil {
			return
		}
		o.do(ctx)
	}
}

// dismiss ends the client's current operation, if the nursery does not.
func (c *client) dismiss(cause error) {
	if o := c.busy; o != nil && o.begun.Load() && o.cancel != nil {
		o.cancel(cause)
	}
	if c.leave != nil {
		c.leave(cause)
	}
}

// allOut ends all operations, including those that should have ended before.
func (h *history) allOut(n *coir.Nursery) {
	for _, c := range h.clients {
		c.inbox.Close()
		c.dismiss(errOut)
	}
	n.Cancel(errOut)
}

// difference describes how the client differs from the model.
func (c *client) difference() string {
	switch o := c.busy; {
	case o.want == nil && o.done.Load():
		return fmt.Sprintf("has returned %v, want it to wait", o)
	case o.want == nil && !o.begun.Load():
		return "has not begun"
	case o.want == nil && c.fiber != nil && c.fiber.State() != coir.StateWaiting:
		return fmt.Sprintf("is %v, want it to wait", c.fiber.State())
	case o.want != nil && !o.done.Load():
		return fmt.Sprintf("waits, want it to return %s", text(*o.want))
	case o.want != nil && o.got != *o.want:
		return fmt.Sprintf("has returned %v, want %s", o, text(*o.want))
	}
	return ""
}

// unchosen returns a difference while an operation that need not wait has not returned.
func (o *order) unchosen() string {
	if o.done.Load() {
		return ""
	}
	return fmt.Sprintf("%s waits, and need not", who(o.client))
}

func (o *order) String() string {
	return fmt.Sprintf("case %d, value %d, error %v", o.got.Clause, o.got.Value, o.err)
}

func text(r model.Result) string {
	return fmt.Sprintf("case %d, value %d, %v", r.Clause, r.Value, r.Outcome)
}

// many is the number of cases before those of a long select. The next index is the last that fits in a parker's word.
const many = park.MaxIndex - 1

// order returns the operation that a step begins, for the channel and the model.
func (h *history) order(s step) *order {
	o := &order{step: s, op: &model.Op{Select: s.isSelect()}, slots: make([]int, len(s.cases))}
	add := func(cl model.Clause, cs coir.Case) {
		o.op.Clauses = append(o.op.Clauses, cl)
		o.cases = append(o.cases, cs)
	}
	if s.isSelect() && s.long {
		for range many {
			add(model.Clause{}, coir.Case{})
		}
	}
	for i, c := range s.cases {
		p := h.chans[c.on]
		switch c.kind {
		case model.Send:
			h.value++
			add(model.Clause{Kind: model.Send, Chan: p.model, Value: h.value}, p.real.SendCase(h.value))
		case model.Recv:
			add(model.Clause{Kind: model.Recv, Chan: p.model}, p.real.RecvCase(&o.slots[i]))
		default:
			add(model.Clause{}, coir.Case{})
		}
		o.on = p.real
	}
	switch {
	case !s.isSelect():
	case s.limit == now:
		add(model.Clause{Kind: model.Now}, coir.After(0))
	case s.limit != none:
		add(model.Clause{Kind: model.Later}, coir.After(s.limit.duration()))
	}
	return o
}

// duration returns the limit as a duration.
func (l limit) duration() time.Duration {
	return [...]time.Duration{now: 0, soon: time.Microsecond, hardly: time.Hour}[l]
}

// do performs the operation. The client calls it.
func (o *order) do(ctx context.Context) {
	switch o.how {
	case scoped, dead:
		ctx, o.cancel = coir.WithCancelCause(ctx)
	case foreign:
		ctx, o.cancel = context.WithCancelCause(context.Background())
	}
	if o.cancel != nil {
		defer o.cancel(nil)
	}
	if o.how == dead {
		o.cancel(errCancel)
	}
	o.begun.Store(true)

	var v int // the value to send; the model reads the clauses too, but nothing changes them
	if len(o.op.Clauses) > 0 {
		v = o.op.Clauses[0].Value
	}
	switch o.verb {
	case send:
		o.err = o.on.Send(ctx, v)
	case trySend:
		o.err = o.on.TrySend(v)
	case sendTimeout:
		o.err = o.on.SendTimeout(ctx, v, o.limit.duration())
	case recv:
		o.got.Value, o.err = o.on.Recv(ctx)
	case tryRecv:
		o.got.Value, o.err = o.on.TryRecv()
	case recvTimeout:
		o.got.Value, o.err = o.on.RecvTimeout(ctx, o.limit.duration())
	case selectFair, selectTimeout:
		o.got.Clause, o.err = coir.Select(ctx, o.cases...)
	case selectPriority:
		o.got.Clause, o.err = coir.SelectPriority(ctx, o.cases...)
	case trySelect:
		o.got.Clause, o.err = coir.TrySelect(o.cases...)
	}
	for _, v := range o.slots {
		o.got.Value += v // only the chosen case has stored a value
	}
	o.got.Outcome = outcomeOf(o.err)
	o.done.Store(true)
}

// strange is the outcome of an error that no operation returns.
const strange = model.Aborted + 1

func outcomeOf(err error) model.Outcome {
	switch {
	case err == nil:
		return model.OK
	case err == coir.ErrWouldBlock:
		return model.WouldBlock
	case err == coir.ErrTimeout:
		return model.TimedOut
	case errors.Is(err, coir.ErrClosed) && errors.Is(err, errAbort):
		return model.Aborted
	case errors.Is(err, coir.ErrClosed):
		return model.Closed
	case isCancelFor(err, errCancel):
		return model.Cancelled
	}
	return strange
}

// isCancelFor reports whether err is the error of an operation that was cancelled for cause: it is context.Canceled and
// its text includes the cause, but it does not match the cause.
func isCancelFor(err, cause error) bool {
	return errors.Is(err, context.Canceled) && !errors.Is(err, cause) &&
		strings.HasSuffix(err.Error(), "cancelled: "+cause.Error())
}
