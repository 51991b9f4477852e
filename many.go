package coir

import (
	"context"
	"unsafe"

	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/wait"
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
		if c.rt != nil {
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
	var batch wakes
	c.mu.Lock()
	for n < len(values) && !batch.full() {
		r, asleep := c.put(values[n])
		if r != park.Data {
			break
		}
		n++
		batch.add(asleep)
	}
	c.mu.Unlock()
	batch.rouse()
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
	by := c.announce(policy.TryRecv)
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
	var batch wakes
	c.mu.Lock()
	for n < len(into) && !batch.full() {
		v, r, asleep := c.take()
		if r != park.Data {
			break
		}
		into[n] = v
		n++
		batch.add(asleep)
	}
	c.mu.Unlock()
	more = n == len(into) || batch.full()
	batch.rouse()
	return n, more
}

// wakes are parkers that have been claimed under a lock and are roused after it.
type wakes struct {
	n  int
	ps [32]*park.Parker
}

//go:norace
func (w *wakes) full() bool { return w.n == len(w.ps) }

//go:norace
func (w *wakes) add(p *park.Parker) {
	if p != nil {
		w.ps[w.n] = p
		w.n++
	}
}

// claim ends waits of the queue for r, until the queue is empty or there is no room for more.
//
//go:norace
func (w *wakes) claim(q *wait.Queue, r park.Reason) {
	for !w.full() {
		n := q.Shift()
		if n == nil {
			return
		}
		_, asleep := n.Claim(r)
		w.add(asleep)
	}
}

//go:norace
func (w *wakes) rouse() {
	if w.n == 0 {
		return
	}
	near := here()
	for _, p := range w.ps[:w.n] {
		p.Rouse(near)
	}
}
