package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote/internal/attempt"
)

// AllDead iterates over the dead letters of a durable channel that are stored when it begins, the oldest first. While
// the loop has a dead letter, no other receiver gets it. [Chan.Revive] sends its value again, and [Item.Ack] removes
// it. When the loop has ended, the others are dead letters as before:
//
//	for it, err := range orders.AllDead(ctx) {
//		if err != nil {
//			return err
//		}
//		fmt.Println(it.Value.ID, it.Value.Reason)
//		if mended(it.Value) {
//			if err := orders.Revive(ctx, it); err != nil {
//				return err
//			}
//		}
//	}
//
// If the loop cannot have all of them, the last pair has an error: the broker refuses, ctx has ended, or another
// receiver holds a dead letter for more than ten seconds. That last error matches [coir.ErrTimeout].
func (c *Chan[T]) AllDead(ctx context.Context) iter.Seq2[*Item[DeadLetter], error] {
	return func(yield func(*Item[DeadLetter], error) bool) {
		dead, err := c.openDead(ctx)
		if err == nil {
			defer dead.Leave()
			err = dead.each(ctx, func(it *Item[DeadLetter]) bool { return yield(it, nil) })
		}
		if err != nil {
			yield(nil, fmt.Errorf("remote: list the dead letters of %s: %w", c.name, err))
		}
	}
}

// openDead opens the channel of the dead letters.
func (c *Chan[T]) openDead(ctx context.Context) (*Chan[DeadLetter], error) {
	if !c.stored {
		return nil, errors.New("a volatile channel has none")
	}
	if err := c.hasLeft(); err != nil {
		return nil, err
	}
	return Durable[DeadLetter](ctx, c.n, c.t, DeadName(c.name), DeadCapacity, WithMeaning(c.set.meaning))
}

// The times of a loop over stored values.
const (
	eachTime = time.Second      // how long a value may take before the broker is asked whether there are more
	eachMost = 10 * time.Second // how long the loop waits for a value that another receiver holds
)

// each receives the values that are stored now, and calls f with each of them, until f returns false. f may settle the
// value.
func (c *Chan[T]) each(ctx context.Context, f func(it *Item[T]) bool) error {
	left, err := c.others(ctx)
	for began := coir.Now(ctx); left > 0 && err == nil; {
		it, late := c.recvWithin(ctx, eachTime)
		if late == nil {
			if !f(it) {
				return nil
			}
			left, began = left-1, coir.Now(ctx)
			continue
		}
		if !errors.Is(late, coir.ErrTimeout) || coir.Ended(ctx) != nil {
			return late
		}
		var n int
		n, err = c.others(ctx)
		if left = min(left, n); left > 0 && err == nil && coir.Now(ctx)-began >= eachMost {
			err = fmt.Errorf("%d did not come: other receivers hold them, or the broker was away: %w", left, late)
		}
	}
	return err
}

// recvWithin is Recv with a time limit. The value belongs to the caller until ctx ends.
func (c *Chan[T]) recvWithin(ctx context.Context, limit time.Duration) (*Item[T], error) {
	short, cancel := coir.WithTimeout(ctx, limit)
	defer cancel()
	it, err := c.Recv(short)
	if err == nil {
		it.Hold(ctx)
	}
	return it, err
}

// others returns how many values are stored that no receiver of this end has.
func (c *Chan[T]) others(ctx context.Context) (n int, err error) {
	err = attempt.Repeat(ctx, 0, func(ctx context.Context) error {
		n, err = c.t.Len(ctx, c.name)
		return err
	})
	if err != nil {
		return 0, err
	}
	c.cond.Lock()
	defer c.cond.Unlock()
	for at := c.order.Front(); at != nil; at = at.Next() {
		if at.Value.(*Item[T]).handed {
			n--
		}
	}
	return n, nil
}

// Revive sends the value of a dead letter of this channel again, and then removes the dead letter, which comes from
// [Chan.AllDead] or from the channel of the dead letters. The encoded value is sent as it is, so a value that could not
// be decoded can be revived for a receiver that can decode it.
//
// The value has a new ID, and its tries begin again with 1. If Revive is called again for the same dead letter, because
// the removal was not stored, the ID is the same. So the value is stored once within [Info.Window], and after that a
// receiver that marks IDs finds its mark.
//
// Revive returns nil when the value is stored and the dead letter is removed. It waits and fails like [Chan.Send], and
// then like [Item.Ack]. If it fails, the dead letter stays, and an error that matches [ErrUnknown] means that the value
// may be stored too. If the channel is full and drops values, Revive returns [ErrFull].
//
// So give ctx a time limit. If the channel is full of values that fail, and its dead letters are full too, Revive waits
// until a receiver has processed one of these values. If none will, make room first: save some dead letters elsewhere,
// and remove them with [Item.Ack]. Then values of the channel become dead letters, and leave room for a revived one.
func (c *Chan[T]) Revive(ctx context.Context, it *Item[DeadLetter]) error {
	_, err := it.whileHeld(func() {})
	if err == nil && (!c.stored || it.c.name != DeadName(c.name)) {
		err = fmt.Errorf("it comes from %s, which does not hold the dead letters of this channel", it.c.name)
	}
	if err == nil {
		m := Msg{ID: it.Value.ID.revived(), Data: bytes.Clone(it.Value.Data)}
		err = c.sendMsg(ctx, &sending{m: m, keep: true})
	}
	if err != nil {
		return fmt.Errorf("remote: revive a dead letter of %s: %w", c.name, err)
	}
	return it.Ack(ctx)
}

// revived returns the ID of a value that is sent again after it has become a dead letter with this ID. Some receivers
// and the transport would take the value for the old one if it kept its ID. Repeating this function yields each ID only
// once, because it is a linear congruential generator of full period.
func (id ID) revived() ID { return ID{id.Sender*0x5851f42d4c957f2d + 1, id.Seq} }
