package coir

import (
	"context"
	"errors"
	"iter"
	"time"
	"unsafe"

	"github.com/coir-go/coir/internal/channel"
	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/wait"
	"github.com/coir-go/coir/internal/xatomic"
)

// Pipe makes a channel that counts the open endpoints of each of its sides, and returns the first endpoint of each
// side. Clone makes more endpoints; each must be closed. Closing the last [Writer] closes the channel, like
// [Chan.Close]. Closing the last [Reader] aborts it: writers immediately get an error that is [ErrClosed], and the
// values that the channel still holds are passed to [OnUndelivered].
//
// Operations on a closed endpoint return ErrClosed. Closing an endpoint does not affect operations that are already
// waiting, or cases that were made before.
//
//go:noinline
func Pipe[T any](capacity int, opts ...ChanOption) (*Writer[T], *Reader[T]) {
	// Spec: CH-46 (the last Close of a side tells the other)
	p := &pipe[T]{ch: NewChan[T](capacity, opts...)}
	p.ends[sending].of, p.ends[receiving].of = &p.ch.core, &p.ch.core
	p.ends[sending].open, p.ends[receiving].open = 1, 1
	return &Writer[T]{p: p}, &Reader[T]{p: p}
}

type pipe[T any] struct {
	ch   *Chan[T]
	ends [2]pipeEnd
}

// pipeEnd is one side of a pipe. As an event, it happens when the side has no open endpoints left.
type pipeEnd struct {
	of   *core
	mu   xatomic.Mutex // guards open
	open int           // number of open endpoints; once it is 0, it stays 0
	gone happening     // there are no open endpoints, and the channel is closed
}

// clone counts one more endpoint. It returns false if no endpoint of the side is open.
func (e *pipeEnd) clone() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.open == 0 {
		return false
	}
	e.open++
	return true
}

// close counts one endpoint less. It reports whether that was the last one.
func (e *pipeEnd) close() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open--
	return e.open == 0
}

// announce wakes the callers that wait until the side has no open endpoints.
//
// Spec: CH-47 (the end of a peer can be waited for)
// Spec: CH-48 (each side's end is announced once)
//
//go:norace
func (e *pipeEnd) announce() {
	race.Release(unsafe.Pointer(e))
	race.Disable()
	e.gone.set()
	race.Enable()
}

//go:norace
func (e *pipeEnd) happened() bool { return e.gone.done.Load() }

//go:norace
func (e *pipeEnd) publish(n *wait.Node, p *park.Parker, t park.Ticket) bool {
	return e.gone.publish(n, p, t)
}

//go:norace
func (e *pipeEnd) withdraw(n *wait.Node) bool { return e.gone.withdraw(n) }

//go:norace
func (e *pipeEnd) op() policy.Op { return e.of.op(policy.Leave) }

func (e *pipeEnd) result(*Case) { race.Acquire(unsafe.Pointer(e)) }

// Writer is the sending endpoint of a [Pipe]. Its operations are those of [Chan].
type Writer[T any] struct {
	p    *pipe[T]
	shut xatomic.Bool
}

// String returns a short description, like [Chan.String].
func (w *Writer[T]) String() string {
	return "coir.Writer[" + typeName[T]() + "](" + w.p.ch.core.describe() + shutMark(&w.shut) + ")"
}

// shutMark returns the part of an endpoint's description that tells that the endpoint is closed, or "".
func shutMark(shut *xatomic.Bool) string {
	race.Disable()
	defer race.Enable()
	if shut.Load() {
		return ", this end closed"
	}
	return ""
}

// Clone returns another endpoint, which must be closed too. The clone of a closed endpoint is closed.
func (w *Writer[T]) Clone() *Writer[T] {
	by := w.p.ch.core.announce(policy.Clone)
	c := &Writer[T]{p: w.p}
	if w.shut.Load() || !w.p.ends[sending].clone() {
		c.shut.Store(true)
	}
	by.stepped()
	return c
}

// Close closes the endpoint. Closing the last one closes the channel. It reports whether this call closed the endpoint.
func (w *Writer[T]) Close() bool {
	by := w.p.ch.core.announce(policy.Leave)
	if w.shut.Swap(true) {
		return false
	}
	if e := &w.p.ends[sending]; e.close() {
		w.p.ch.Close()
		e.announce()
	}
	by.stepped()
	return true
}

// GoneCase returns a case that happens when the last [Reader] has been closed.
func (w *Writer[T]) GoneCase() Case { return Case{what: caseEvent, arg: &w.p.ends[receiving]} }

// channel returns the pipe's channel, or a closed one if the endpoint is closed.
func (w *Writer[T]) channel() *Chan[T] {
	if w.shut.Load() {
		return shutChan(w.p.ch)
	}
	return w.p.ch
}

// Send calls [Chan.Send].
func (w *Writer[T]) Send(ctx context.Context, v T) error { return w.channel().Send(ctx, v) }

// SendTimeout calls [Chan.SendTimeout].
func (w *Writer[T]) SendTimeout(ctx context.Context, v T, d time.Duration) error {
	return w.channel().SendTimeout(ctx, v, d)
}

// TrySend calls [Chan.TrySend].
func (w *Writer[T]) TrySend(v T) error { return w.channel().TrySend(v) }

// SendMany calls [Chan.SendMany].
func (w *Writer[T]) SendMany(ctx context.Context, values []T) (int, error) {
	return w.channel().SendMany(ctx, values)
}

// SendCase calls [Chan.SendCase].
func (w *Writer[T]) SendCase(v T) Case { return w.channel().SendCase(v) }

// Stats returns the counters of the pipe's channel: see [Chan.Stats].
func (w *Writer[T]) Stats() ChanStats { return w.p.ch.Stats() }

// Reader is the receiving endpoint of a [Pipe]. Its operations are those of [Chan].
type Reader[T any] struct {
	p    *pipe[T]
	shut xatomic.Bool
}

// String returns a short description, like [Chan.String].
func (r *Reader[T]) String() string {
	return "coir.Reader[" + typeName[T]() + "](" + r.p.ch.core.describe() + shutMark(&r.shut) + ")"
}

// Clone returns another endpoint, which must be closed too. The clone of a closed endpoint is closed.
func (r *Reader[T]) Clone() *Reader[T] {
	by := r.p.ch.core.announce(policy.Clone)
	c := &Reader[T]{p: r.p}
	if r.shut.Load() || !r.p.ends[receiving].clone() {
		c.shut.Store(true)
	}
	by.stepped()
	return c
}

// Close closes the endpoint. Once the last reader is closed, nothing more can be received: see [Pipe]. Close reports
// whether this call closed the endpoint.
func (r *Reader[T]) Close() bool {
	by := r.p.ch.core.announce(policy.Leave)
	if r.shut.Swap(true) {
		return false
	}
	defer by.stepped()
	if e := &r.p.ends[receiving]; e.close() {
		defer e.announce() // even if OnUndelivered panics
		r.p.ch.Abort(errNoReader)
	}
	return true
}

// GoneCase returns a case that happens when the last [Writer] has been closed. Values sent before that can still be
// received.
func (r *Reader[T]) GoneCase() Case { return Case{what: caseEvent, arg: &r.p.ends[sending]} }

func (r *Reader[T]) channel() *Chan[T] {
	if r.shut.Load() {
		return shutChan(r.p.ch)
	}
	return r.p.ch
}

// Recv calls [Chan.Recv].
func (r *Reader[T]) Recv(ctx context.Context) (T, error) { return r.channel().Recv(ctx) }

// RecvTimeout calls [Chan.RecvTimeout].
func (r *Reader[T]) RecvTimeout(ctx context.Context, d time.Duration) (T, error) {
	return r.channel().RecvTimeout(ctx, d)
}

// TryRecv calls [Chan.TryRecv].
func (r *Reader[T]) TryRecv() (T, error) { return r.channel().TryRecv() }

// RecvMany calls [Chan.RecvMany].
func (r *Reader[T]) RecvMany(ctx context.Context, into []T) (int, error) {
	return r.channel().RecvMany(ctx, into)
}

// RecvBatch calls [Chan.RecvBatch].
func (r *Reader[T]) RecvBatch(ctx context.Context, into []T, linger time.Duration) (int, error) {
	return r.channel().RecvBatch(ctx, into, linger)
}

// All is like [Chan.All]. If the endpoint is closed before all values have been received, the last pair has an error
// that is [ErrClosed]. Always use both loop variables, as with [Chan.All].
func (r *Reader[T]) All(ctx context.Context) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			v, err := r.Recv(ctx) // as in Chan.All
			if r.p.ch.core.drained(err) || !yield(v, err) || err != nil {
				return
			}
		}
	}
}

// RecvCase calls [Chan.RecvCase].
func (r *Reader[T]) RecvCase(dst *T) Case { return r.channel().RecvCase(dst) }

// Stats returns the counters of the pipe's channel: see [Chan.Stats].
func (r *Reader[T]) Stats() ChanStats { return r.p.ch.Stats() }

var (
	errNoReader = errors.New("every reader of the pipe is closed")
	errShut     = errors.New("this endpoint of the pipe is closed")
)

// shutChan returns the channel that a closed endpoint of c uses.
func shutChan[T any](c *Chan[T]) *Chan[T] {
	s := NewChan[T](0, WithName(c.core.name))
	s.core.end(channel.Aborted, errShut)
	return s
}
