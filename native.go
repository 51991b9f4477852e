package coir

import (
	"context"
	"errors"
)

// FromChan returns a channel that gets the values of in, a Go channel. A child of n moves the values until in is
// closed, and then closes the returned channel. If n is cancelled first, the child aborts the returned channel. If the
// returned channel is closed or aborted first, the child stops, and senders on in will block.
//
// A value that was received from in and cannot be delivered is passed to [OnUndelivered], like the values that the
// channel holds when it is aborted. The capacity and the options are those of [NewChan].
//
// FromChan is for programs that move from Go's channels to coir's step by step. Package sim controls neither the wait
// for a value from in nor the goroutine that sends it: a program to be simulated must use a Chan instead.
func FromChan[T any](n *Nursery, in <-chan T, capacity int, opts ...ChanOption) *Chan[T] {
	c := NewChan[T](capacity, opts...)
	n.Go("FromChan", func(ctx context.Context) error {
		ended := false
		defer func() {
			if !ended { // by a cancellation, or a panic of OnUndelivered
				c.Abort(context.Cause(ctx))
			}
		}()
		for {
			v, ok, err := recvNative(ctx, in)
			if err != nil {
				return err
			}
			if !ok {
				ended = true
				c.Close()
				return nil
			}
			if err = c.Send(ctx, v); err == nil {
				continue
			}
			c.handBack(v)
			ended = errors.Is(err, ErrClosed)
			switch {
			case ended:
				return nil
			case !errors.Is(err, ErrWouldBlock): // from OverflowFail: only v is lost
				return err
			}
		}
	})
	return c
}

// ToChan returns a Go channel that gets the values of c. A child of n moves the values until c is closed or aborted, or
// n is cancelled, and then closes the returned channel. To find out whether the sequence is complete or was cut off, a
// receiver checks the context of n, and c.
//
// The returned channel has no buffer: values that have not been received from it are still in c, except for one that
// the child holds. If n is cancelled, that value is passed to the [OnUndelivered] handler of c. See [FromChan] for the
// purpose, and for package sim.
func ToChan[T any](n *Nursery, c *Chan[T]) <-chan T {
	out := make(chan T)
	n.Go("ToChan", func(ctx context.Context) error {
		defer close(out)
		for v, err := range c.All(ctx) {
			if err != nil {
				if errors.Is(err, ErrClosed) {
					return nil // aborted: other users of c get the cause
				}
				return err
			}
			if err := sendNative(ctx, out, v); err != nil {
				c.handBack(v)
				return err
			}
		}
		return nil
	})
	return out
}

// recvNative receives from in. It returns false if in is closed.
func recvNative[T any](ctx context.Context, in <-chan T) (v T, ok bool, err error) {
	select {
	case v, ok = <-in:
		return v, ok, nil // Send checks ctx
	default:
	}
	blocking(ctx, func() {
		select {
		case v, ok = <-in:
		case <-ctx.Done():
			err = ctx.Err()
		}
	})
	return v, ok, err
}

// sendNative sends v on out.
func sendNative[T any](ctx context.Context, out chan<- T, v T) (err error) {
	blocking(ctx, func() {
		select {
		case out <- v:
		case <-ctx.Done():
			err = ctx.Err()
		}
	})
	return err
}
