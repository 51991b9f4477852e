package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/coir-go/coir"
)

// How a value comes out of a durable channel.
//
// One fiber of the end pulls deliveries and hands them to receivers over an unbuffered channel. A value is held from
// when it is pulled until it is settled: it is in c.order, and another fiber renews its lease until the fiber that
// received it has ended. Ack settles a value by removing it, Nak by giving it back, and Reject by removing it after a
// dead letter is stored. If no fiber holds or receives a value for the time of a lease, the end gives back the values
// that it has pulled, because other processes may want them, and pulls no more until a fiber receives.
//
// Invariants:
//
//	R1 effect: a value is removed only after its receiver has acknowledged it, or its dead letter is stored.
//	R2 once:   this process hands a value to a second receiver only after the first gave it back.
//	R3 seen:   a value counts as seen from Ack on, not from its delivery: a value that is given back must be delivered
//	           again.
//	R4 credit: credit is given after the removal is stored.
//
// A delivery of a value that is held (its lease had ended, or the broker has restarted) replaces the earlier delivery,
// and is not handed over. A delivery of a value that was seen is acknowledged again, because the first acknowledgement
// was lost.

// Recv receives the next value. It waits while there is none, and while the transport cannot be reached. It returns an
// error that matches [coir.ErrClosed] if the channel was closed and all its values have been removed, or if this end
// was left. If the transport fails for good, all receives of this end return its error.
//
// On a durable channel, Recv does not remove the value: [Item.Ack] does. The value belongs to the caller, and no other
// receiver gets it, until the calling fiber or ctx ends. If the caller is a goroutine, only the end of ctx counts. The
// value may be delivered a second time, here or in another process, if this process or the network stops for longer
// than [Info.Lease], or fails, before the removal is stored. [Chan.RecvTx] says how the value can have its effect only
// once.
//
// On a volatile channel, Recv removes the value from the buffer, and Ack, Nak and Reject do nothing.
func (c *Chan[T]) Recv(ctx context.Context) (*Item[T], error) {
	var it *Item[T]
	var err error
	if c.begin(1) {
		err = c.aside.Wait(ctx)
	}
	if err == nil { // if the end was left, in is closed
		it, err = c.in.Recv(ctx)
	}
	if err != nil {
		c.served()
		return nil, c.recvError(err)
	}
	it.Hold(ctx)
	return it, nil
}

// RecvCase returns a case that receives into *dst, which must not be nil. The value belongs to this end until the value
// is settled or the end is left, because a case does not know which fiber receives. Call [Item.Hold] to bind the value
// to a fiber.
//
// In a nursery with a limit, starting to receive needs a free place for a moment. A Recv gives up its own place for
// that; a select keeps its place.
func (c *Chan[T]) RecvCase(dst **Item[T]) coir.Case {
	c.begin(0) // if the end was left, the case finds a closed channel
	return c.in.RecvCase(dst)
}

// TxError is an error of RecvTx itself, as opposed to one of the function that RecvTx calls: it could not receive a
// value, or does not know whether the value was removed. Its Err is the reason.
type TxError struct {
	// Called means that the function has returned nil: its effect may have happened, and the value may be delivered
	// again. Without Called, the function was not called, or its changes were taken back.
	Called bool
	Err    error
}

// Error returns the text of Err.
func (e *TxError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *TxError) Unwrap() error { return e.Err }

// RecvTx receives a value, calls effect with it, and removes the value when effect has returned nil. If effect fails,
// RecvTx calls [Item.Fail], and returns the error of effect unchanged. All other errors are of type [*TxError]. So an
// error of effect that matches [ErrUnknown], because effect itself sends to a channel, is not mistaken for one of
// RecvTx. An effect that calls RecvTx should not return the TxError of that call.
//
// The effect of each value happens once if effect writes it to a database in one transaction with the ID of the value,
// and does nothing if the database already has the ID. Then a value that is delivered again, because this process or
// the broker has failed in between, changes nothing.
//
// RecvTx returns nil when the removal is stored. A TxError that matches [ErrUnknown] means that effect has returned
// nil, and that the value may be delivered again.
//
// If the value cannot be processed at all, effect should return an error that matches [ErrPoison].
func (c *Chan[T]) RecvTx(ctx context.Context, effect func(ctx context.Context, it *Item[T]) error) error {
	it, err := c.Recv(ctx)
	if err != nil {
		return &TxError{Err: err}
	}
	defer it.Nak(0) // if effect panics; otherwise the value is already settled
	if err := effect(ctx, it); err != nil {
		_ = it.Fail(ctx, err) // if it fails, the value is delivered again
		return err
	}
	if err := it.Ack(ctx); err != nil {
		return &TxError{Called: true, Err: err}
	}
	return nil
}

// recvError returns the error of a receive. The local channel has the same name as this one.
func (c *Chan[T]) recvError(err error) error {
	c.cond.Lock()
	why := cmp.Or(c.left, c.failed)
	c.cond.Unlock()
	if why != nil && errors.Is(err, coir.ErrClosed) {
		return fmt.Errorf("remote: receive from %s: %w", c.name, why)
	}
	return fmt.Errorf("remote: receive: %w", err)
}

// removed gives credit for a value whose removal is stored.
func (c *Chan[T]) removed() {
	c.cond.Lock()
	to, ok := c.wants.take()
	c.cond.Unlock()
	if ok {
		c.t.Tell(creditSubject(to), creditMessage(1, false))
	}
}

// begin starts the fibers that receive, unless they were started before or the end was left. It reports whether
// the fibers have been started. calls is added to c.calls: it is 1 for Recv, and 0 for RecvCase.
func (c *Chan[T]) begin(calls int) (begun bool) {
	c.cond.Lock()
	c.calls += calls
	first := !c.begun && c.left == nil
	c.begun = c.begun || first
	begun = c.begun
	if c.resting {
		c.resting = false
		c.cond.Broadcast() // for rest
	}
	c.cond.Unlock()
	if !first {
		return begun
	}
	c.aside.Go(c.n, "receive "+c.name, func(in *coir.Nursery) {
		if !c.stored {
			c.start(in, "pass on", func(ctx context.Context) { c.receive(ctx, c.passOn) })
			return
		}
		c.start(in, "pull", func(ctx context.Context) { c.receive(ctx, c.pull) })
		c.start(in, "keep", c.keep)
	})
	return true
}

// receive makes the end reachable for senders, and calls f, which hands values to receivers. When f returns, receive
// ends all receives. If f returned nil, the channel was closed.
func (c *Chan[T]) receive(ctx context.Context, f func(ctx context.Context) error) {
	err := c.meet(ctx)
	if err == nil {
		err = f(ctx)
	}
	ended := coir.Ended(ctx)
	switch {
	case err == nil:
		c.in.Close()
		return
	case ended != nil: // if the end was left, c.left counts
		err = fmt.Errorf("%w, because its nursery was cancelled: %w", errLeft, ended)
	}
	c.cond.Lock()
	c.failed = err
	c.cond.Unlock()
	c.in.Abort(err)
}

// meet makes the end reachable for senders, and announces that.
func (c *Chan[T]) meet(ctx context.Context) error {
	err := c.serve(ctx, wantSubject(c.name), func(data []byte) []byte {
		c.wanted(data)
		return nil
	})
	if err == nil && !c.stored {
		err = c.serve(ctx, valueSubject(c.name), c.accept)
	}
	if err == nil {
		c.t.Tell(helloSubject(c.name), nil)
	}
	return err
}

// served subtracts 1 from the count of receiving calls. Selects are not counted, so the count may be 0 already.
func (c *Chan[T]) served() {
	c.cond.Lock()
	defer c.cond.Unlock()
	c.calls = max(c.calls-1, 0)
}

// start starts a fiber of this end, which Leave ends.
func (c *Chan[T]) start(in *coir.Nursery, name string, f func(ctx context.Context)) {
	in.Go(name+" "+c.name, func(ctx context.Context) error {
		ctx, cancel := coir.WithCancel(ctx)
		defer cancel()
		c.cond.Lock()
		left := c.left != nil
		c.stop = append(c.stop, cancel)
		c.cond.Unlock()
		if left {
			cancel() // f gives back what the end has
		}
		f(ctx)
		return nil
	})
}

// wanted records the want of a sender. If there is spare credit, a sender gets it.
func (c *Chan[T]) wanted(data []byte) {
	x, ok := parseWant(data)
	if !ok {
		return
	}
	c.cond.Lock()
	to, ok := c.wants.set(x)
	c.cond.Unlock()
	if ok {
		c.t.Tell(creditSubject(to), creditMessage(1, true))
	}
}

// accept takes values of a volatile channel into the buffer, and returns an answer for each. It does not wait.
func (c *Chan[T]) accept(data []byte) (answer []byte) {
	ms, ok := parseValues(data)
	if !ok {
		return appendRefusal(nil, "the message cannot be read")
	}
	its, errs := make([]Item[T], len(ms)), make([]error, len(ms))
	for i, m := range ms {
		its[i].ID, its[i].Tries, its[i].c = m.ID, 1, c
		errs[i] = c.set.codec.Unmarshal(m.Data, &its[i].Value)
	}
	c.cond.Lock()
	defer c.cond.Unlock()
	for i := range its {
		switch {
		case errs[i] != nil:
			answer = appendRefusal(answer, "the codec cannot decode the value: "+errs[i].Error())
		case len(c.buf) >= c.cap || c.left != nil:
			answer = append(answer, answerFull)
		default:
			c.buf = append(c.buf, &its[i])
			answer = append(answer, answerTaken)
		}
	}
	c.sight.buffered.Store(int64(len(c.buf)))
	c.cond.Signal() // for passOn
	return answer
}

// passOn hands the values of a volatile channel to receivers, until ctx ends.
func (c *Chan[T]) passOn(ctx context.Context) error {
	for {
		it, err := c.firstInBuffer(ctx)
		if err == nil {
			err = c.in.Send(ctx, it)
		}
		if err != nil {
			return err
		}
		c.cond.Lock()
		c.buf[0] = nil // so that it can be collected
		c.buf = c.buf[1:]
		c.sight.buffered.Store(int64(len(c.buf)))
		c.cond.Unlock()
		c.count(func(st *Stats) { st.Received++ })
		c.removed()
	}
}

func (c *Chan[T]) firstInBuffer(ctx context.Context) (*Item[T], error) {
	c.cond.Lock()
	defer c.cond.Unlock()
	for len(c.buf) == 0 {
		if err := c.cond.Wait(ctx); err != nil {
			return nil, err
		}
	}
	return c.buf[0], nil
}
