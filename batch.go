package coir

import (
	"context"
	"unsafe"

	"github.com/coir-go/coir/internal/channel"
	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/race"
)

// SendMany sends the values in order, as if by one Send after the other, and takes the lock once for as many as need no wait.
// Values of others may come between. It returns how many were sent; with fewer than all of them there is an error.
func (c *Chan[T]) SendMany(ctx context.Context, values []T) (int, error) {
	race.Reads(unsafe.Pointer(unsafe.SliceData(values)), uintptr(len(values))*unsafe.Sizeof(*new(T)))
	sent := 0
	for sent < len(values) {
		// One at least goes the whole way: it looks at the context, waits, and spends of the fiber's budget.
		if err := c.Send(ctx, values[sent]); err != nil {
			return sent, err
		}
		sent++
		if c.core.rt != nil {
			continue // each by itself, so that the policy is told of it
		}
		race.Disable()
		sent += c.putMany(values[sent:min(len(values), sent+chunk)])
		race.Enable()
	}
	return sent, nil
}

// chunk is how many values go under one lock at most: others want it too.
const chunk = 256

// putMany sends what needs no wait and wakes at most some; then it returns, and the caller comes again.
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

// RecvMany waits for a value, and then takes as many as there are, up to len(into), under one lock. It returns how many. An
// error means that there are none; with an empty slice it returns at once.
func (c *Chan[T]) RecvMany(ctx context.Context, into []T) (int, error) {
	if len(into) == 0 {
		return 0, nil
	}
	v, err := c.Recv(ctx)
	if err != nil {
		return 0, err
	}
	into[0] = v
	by := c.core.announce(policy.TryRecv)
	race.Disable()
	n := 1
	for more := true; more && n < len(into); {
		var got int
		got, more = c.takeMany(into[n:min(len(into), n+chunk)])
		n += got
	}
	race.Wrote(unsafe.Pointer(unsafe.SliceData(into)), uintptr(n)*unsafe.Sizeof(v))
	race.Enable()
	if by != nil {
		by.stepped()
	}
	return n, nil
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

// unlockBatch unlocks the channel and readies the parkers of a batch.
//
//go:norace
func (c *core) unlockBatch(batch *channel.Wakes) {
	if !batch.Any() {
		c.unlock(nil, nil)
		return
	}
	near := currentWorker()
	c.unlock(nil, near)
	rouse(batch, near)
}

// rouse readies the parkers of a batch.
//
//go:norace
func rouse(batch *channel.Wakes, near park.Place) {
	for _, p := range batch.All() {
		p.Rouse(near)
	}
}
