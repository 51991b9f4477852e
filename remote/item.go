package remote

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote/internal/attempt"
)

// Item is a received value, and the right to settle it. Only a receive gives that right: the zero Item counts as
// settled.
type Item[T any] struct {
	Value T
	ID    ID  // the same for all deliveries of the value
	Tries int // the number of deliveries of the value, including this one

	c *Chan[T]

	// The lock of c guards the fields below.
	d       Delivery // nil on a volatile channel
	state   itemState
	handed  bool            // a receiver holds it
	holder  *coir.Fiber     // the fiber that received the value; nil if not known
	patient context.Context // the context of the receive; nil before the receive
}

type itemState uint8

const (
	itemHeld    itemState = iota
	itemSettled           // by Ack, Nak or Reject, or because the holder has ended
)

// ErrSettled is the error of Ack, Fail and Reject if the value was settled before: by Ack, Fail, Reject or Nak, or
// because the fiber that received it has ended.
var ErrSettled = errors.New("remote: the value was settled before")

// ErrPoison marks a value that cannot be processed. If the effect of [Chan.RecvTx] returns an error that matches
// ErrPoison, the value becomes a [DeadLetter] at once, and is not tried again. See [Item.Fail].
var ErrPoison = errors.New("remote: the value cannot be processed")

// whileHeld calls f under the lock of the channel, if the value is held. Otherwise it returns ErrSettled. It also
// returns the delivery, unless the item was not received.
func (it *Item[T]) whileHeld(f func()) (Delivery, error) {
	c := it.c
	if c == nil {
		return nil, fmt.Errorf("%w: this item is not the one that was received, and cannot be settled", ErrSettled)
	}
	c.cond.Lock()
	defer c.cond.Unlock()
	if it.state != itemHeld {
		return it.d, fmt.Errorf("%w: %v of %s", ErrSettled, it.ID, c.name)
	}
	f()
	return it.d, nil
}

// settle marks the item as settled. Call it under c's lock.
func (it *Item[T]) settle() { it.state = itemSettled }

// Hold binds the value to the calling fiber and to ctx: when one of them ends, the value is given back. Recv does this
// itself. Call Hold for a value that was received by a select, or that another fiber has passed on.
func (it *Item[T]) Hold(ctx context.Context) {
	fiber := coir.Self(ctx)
	_, _ = it.whileHeld(func() { it.holder, it.patient = fiber, ctx }) // a settled value needs no holder
}

// Delivery returns the transport's delivery of the value, or nil on a volatile channel. It is for packages of
// transports that can do more than [Transport] requires, such as package remote/postgres. A program settles the value
// by the methods of the item.
func (it *Item[T]) Delivery() Delivery {
	d, _ := it.whileHeld(func() {})
	return d
}

// Ack removes the value from the channel, because its effect is done. It returns nil when the removal is stored. While
// the broker does not answer, Ack tries again until ctx ends, and then returns [ErrUnknown]: the value may be delivered
// again. It returns [ErrSettled] if the value was settled before.
func (it *Item[T]) Ack(ctx context.Context) error {
	c := it.c
	d, err := it.whileHeld(func() {
		it.settle()
		c.seen.add(it.ID)
	})
	if d == nil || err != nil {
		return err
	}
	err = attempt.Repeat(ctx, 0, func(ctx context.Context) error {
		err := d.Ack(ctx)
		c.heard(ctx, err)
		return err
	})
	c.drop(it)
	if err != nil {
		if !errors.Is(err, ErrUnknown) && coir.Ended(ctx) != nil {
			err = fmt.Errorf("%w: %w", ErrUnknown, err) // a later delivery to this process will be acknowledged
		}
		return fmt.Errorf("remote: acknowledge a value of %s: %w", c.name, err)
	}
	c.count(func(st *Stats) { st.Acked++ })
	c.removed()
	return nil
}

// Nak gives the value back: it is delivered again, to any receiver, after the delay. Nak does nothing if the value was
// settled before.
func (it *Item[T]) Nak(delay time.Duration) {
	d, err := it.whileHeld(it.settle)
	if d == nil || err != nil {
		return
	}
	it.c.drop(it)
	d.Nak(delay)
}

// Fail reports that the effect of the value has failed with err. The value is delivered again, after a delay that grows
// with its tries. If the value has been delivered as often as [WithTries] allows, or if err matches [ErrPoison], Fail
// calls Reject instead, and the value becomes a [DeadLetter]. But Fail does not reject a value if ctx has ended, or if
// err matches [ErrUnknown] or [ErrUnavailable]. An error of Fail is one of Reject.
func (it *Item[T]) Fail(ctx context.Context, err error) error {
	if _, err := it.whileHeld(func() {}); err != nil {
		return err
	}
	poison := errors.Is(err, ErrPoison)
	if it.Tries < it.c.set.tries && !poison || attempt.Open(err) || coir.Ended(ctx) != nil {
		it.Nak(it.delay())
		return nil
	}
	if poison {
		return it.Reject(ctx, err.Error())
	}
	return it.Reject(ctx, fmt.Sprintf("it has failed, and was delivered %d times: %v", it.Tries, err))
}

// Reject removes the value from the channel, and stores it as a [DeadLetter] with the reason. It returns nil when both
// are stored. After an error other than [ErrSettled], the value is delivered again, and may also be stored as a dead
// letter. If the error matches [ErrFull], there is no room for another dead letter (see [DeadCapacity]), and the value
// is delivered again after the same delay as after Fail.
func (it *Item[T]) Reject(ctx context.Context, reason string) error {
	err := it.reject(ctx, reason)
	switch {
	case errors.Is(err, ErrFull):
		it.Nak(it.delay())
	case err != nil:
		it.Nak(failTime)
	}
	return err
}

// delay returns how long a value that has failed is not delivered.
func (it *Item[T]) delay() time.Duration { return min(failTime<<min(it.Tries, 16), time.Minute) }

// reject is Reject, but the value stays held if its dead letter was not stored.
func (it *Item[T]) reject(ctx context.Context, reason string) error {
	d, err := it.whileHeld(func() {})
	if err != nil {
		return err
	}
	if d != nil {
		if err := it.c.bury(ctx, d, reason); err != nil {
			return err
		}
	}
	return it.Ack(ctx)
}

// abandoned reports whether the receiver of the value has ended.
func (it *Item[T]) abandoned() bool {
	it.c.cond.Lock()
	fiber, ctx := it.holder, it.patient
	it.c.cond.Unlock()
	return ctx != nil && (coir.Ended(ctx) != nil || fiber != nil && fiber.State() == coir.StateEnded)
}

// drop removes a value from the held values.
func (c *Chan[T]) drop(it *Item[T]) {
	c.cond.Lock()
	defer c.cond.Unlock()
	if at, ok := c.held[it.ID]; ok && at.Value == any(it) {
		c.order.Remove(at)
		delete(c.held, it.ID)
	}
}
