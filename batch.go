package coir

import (
	"context"
	"time"
	"unsafe"

	"github.com/coir-go/coir/internal/channel"
	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/race"
)

// SendMany sends the values in order, like consecutive calls of Send, but takes the lock once for all values that can
// be sent without waiting. Values of other senders may come between them. It returns the number of values sent, and an
// error if that is less than len(values).
func (c *Chan[T]) SendMany(ctx context.Context, values []T) (int, error) {
	race.Reads(unsafe.Pointer(unsafe.SliceData(values)), uintptr(len(values))*unsafe.Sizeof(*new(T)))
	sent := 0
	for sent < len(values) {
		// Send the first value with Send, which checks the context, waits, and charges the fiber's budget.
		if err := c.Send(ctx, values[sent]); err != nil {
			return sent, err
		}
		sent++
		if c.core.rt != nil {
			continue // one at a time, so that the policy sees each send
		}
		race.Disable()
		sent += c.putMany(values[sent:min(len(values), sent+chunk)])
		race.Enable()
	}
	return sent, nil
}

// chunk is the largest number of values passed while the lock is held once. It lets other operations get the lock.
const chunk = 256

// putMany sends values until one would have to wait or the batch of wakes is full. It returns the number of values
// sent. The caller calls it again for the remaining values.
//
//go:norace
func (c *Chan[T]) putMany(values []T) (n int) {
	var batch channel.Wakes
	c.ch.Lock()
	for n < len(values) && !batch.Full() {
		r, ready := c.ch.Put(values[n])
		if r != park.Data {
			break
		}
		n++
		batch.Add(ready)
	}
	c.core.unlockBatch(&batch)
	return n
}

// RecvMany waits for a value, then receives as many as there are, up to len(into), under one lock. It returns the
// number of values received, which is 0 if there is an error. With an empty slice it returns immediately.
func (c *Chan[T]) RecvMany(ctx context.Context, into []T) (int, error) {
	if len(into) == 0 {
		return 0, nil
	}
	v, err := c.Recv(ctx)
	if err != nil {
		return 0, err
	}
	into[0] = v
	return c.takeMore(into, 1), nil
}

// RecvBatch waits for a value, and then collects more values until into is full, linger has passed since the first
// value, or the channel is closed and empty. It returns the number of values received.
//
// If ctx ends, or the channel is closed or aborted, before the first value arrives, RecvBatch returns 0 and the error.
// If that happens after the first value, RecvBatch returns the values received so far and a nil error, and the next
// call returns the error. A received value is therefore never lost, and never returned together with an error. If
// linger is 0 or less, or into is empty, RecvBatch is the same as [Chan.RecvMany].
func (c *Chan[T]) RecvBatch(ctx context.Context, into []T, linger time.Duration) (int, error) {
	n, err := c.RecvMany(ctx, into)
	if n == len(into) || err != nil || linger <= 0 {
		return n, err
	}
	by := resolve(ctx)
	race.Disable()
	clk := by.clock()
	until := after(clk, linger)
	left := linger
	race.Enable()
	for n < len(into) && left > 0 {
		v, err := c.RecvTimeout(ctx, left)
		if err != nil {
			break
		}
		into[n] = v
		n = c.takeMore(into, n+1)
		race.Disable()
		left = time.Duration(until - clk.Now())
		race.Enable()
	}
	return n, nil
}

// takeMore receives the values that are available now into into[n:]. It returns the total number of values in into.
func (c *Chan[T]) takeMore(into []T, n int) int {
	by := c.core.announce(policy.TryRecv)
	had := n
	race.Disable()
	for more := true; more && n < len(into); {
		var got int
		got, more = c.takeMany(into[n:min(len(into), n+chunk)])
		n += got
	}
	race.Wrote(unsafe.Pointer(unsafe.SliceData(into)), uintptr(n)*unsafe.Sizeof(into[0]))
	race.Enable()
	if by != nil {
		how := policy.Done
		if n == had {
			how = policy.WouldBlock
		}
		by.tell(how, n-had)
		by.stepped()
	}
	return n
}

//go:norace
func (c *Chan[T]) takeMany(into []T) (n int, more bool) {
	var batch channel.Wakes
	c.ch.Lock()
	for n < len(into) && !batch.Full() {
		v, r, ready := c.ch.Take()
		if r != park.Data {
			break
		}
		into[n] = v
		n++
		batch.Add(ready)
	}
	more = n == len(into) || batch.Full()
	c.core.unlockBatch(&batch)
	return n, more
}

// unlockBatch unlocks the channel and readies the parkers of the batch.
//
//go:norace
func (c *core) unlockBatch(batch *channel.Wakes) {
	if !batch.Any() {
		c.unlock(nil, nil)
		return
	}
	here := currentWorker()
	c.unlock(nil, here)
	readyBatch(batch, here)
}

// readyBatch readies the parkers of the batch.
//
//go:norace
func readyBatch(batch *channel.Wakes, here park.Place) {
	for _, p := range batch.All() {
		p.MakeReady(here)
	}
}
