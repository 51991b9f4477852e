package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote/internal/attempt"
)

// The fibers of a receiving end of a durable channel. The head of recv.go has the invariants.

// pull pulls deliveries, and hands them to receivers. It returns nil if the channel was closed.
func (c *Chan[T]) pull(ctx context.Context) error {
	defer c.t.Leave(c.name)
	back := attempt.NewBackoff()
	credit := 1
	for {
		if err := c.rest(ctx); err != nil {
			return err
		}
		began := coir.Now(ctx)
		ds, err := c.pullOnce(ctx, credit)
		credit = c.nextCredit(credit, ds)
		c.handOver(ctx, ds, credit == 1)
		switch {
		case err == nil:
			back = attempt.NewBackoff()
			c.heard(ctx, nil)
		case errors.Is(err, coir.ErrClosed):
			return nil
		case coir.Now(ctx)-began >= pullTime: // there was no value
			c.ping(ctx)
		case attempt.Open(err):
			c.heard(ctx, err)
			if err := back.Wait(ctx); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// ping asks a broker that had trouble whether it has returned. A pull that finds no value does not show that. It also
// asks whether dead letters that were full have room again.
func (c *Chan[T]) ping(ctx context.Context) {
	if c.sight.deadFull.Is() {
		_ = attempt.Ask(ctx, attempt.Short, c.askDead)
	}
	if !c.sight.trouble.Is() {
		return
	}
	err := attempt.Ask(ctx, attempt.Short, func(ctx context.Context) error {
		_, err := c.t.Len(ctx, c.name)
		return err
	})
	c.heard(ctx, err)
}

func (c *Chan[T]) pullOnce(ctx context.Context, credit int) ([]Delivery, error) {
	ctx, cancel := coir.WithTimeout(ctx, pullTime)
	defer cancel()
	return c.t.Pull(ctx, c.name, credit)
}

// nextCredit returns how many values to pull next. A value that was delivered before may end this process, as it may
// have ended another one. The values that were pulled with it would then count one more delivery, although no fiber
// received them. So after such a value, the end pulls one value at a time, and only when a fiber receives.
func (c *Chan[T]) nextCredit(credit int, ds []Delivery) int {
	if slices.ContainsFunc(ds, func(d Delivery) bool { return d.Tries() > 1 }) {
		return 1
	}
	if len(ds) == 0 {
		return credit
	}
	return min(2*credit, c.set.prefetch)
}

// rest waits until pull may pull values. If pull rests, that is when a fiber receives; otherwise rest returns at once.
// A case that is used again does not call begin, so rest also polls.
func (c *Chan[T]) rest(ctx context.Context) error {
	for c.rests() && c.in.Stats().Recv.Waiting == 0 && coir.Ended(ctx) == nil {
		in, cancel := coir.WithTimeout(ctx, pollMax)
		c.cond.Lock()
		if c.resting && c.calls == 0 {
			_ = c.cond.Wait(in)
		}
		c.cond.Unlock()
		cancel()
	}
	c.cond.Lock()
	c.resting = false
	c.cond.Unlock()
	return coir.Ended(ctx)
}

func (c *Chan[T]) rests() bool {
	c.cond.Lock()
	defer c.cond.Unlock()
	return c.resting && c.calls == 0
}

// handOver hands deliveries to receivers. It gives back the deliveries that no receiver takes before ctx ends or pull
// rests. If last is set, pull rests when all are handed over.
func (c *Chan[T]) handOver(ctx context.Context, ds []Delivery, last bool) {
	if len(ds) == 0 {
		return
	}
	var its []*Item[T]
	for _, d := range ds { // hold all before handing over the first, which may take long
		it := &Item[T]{ID: d.Msg().ID, Tries: d.Tries(), c: c, d: d}
		if c.hold(ctx, it) {
			its = append(its, it)
		}
	}
	ctx, cancel := coir.WithCancel(ctx)
	defer cancel()
	c.cond.Lock()
	c.giveUp = cancel
	c.resting = last // a receiver that comes back for the next value sees it
	c.cond.Unlock()
	for i, it := range its {
		if !c.hand(ctx, it) {
			for _, it := range its[i:] {
				it.Nak(0)
			}
			return
		}
	}
}

// hand hands a value to a receiver. It reports false if ctx has ended.
func (c *Chan[T]) hand(ctx context.Context, it *Item[T]) bool {
	if err := c.set.codec.Unmarshal(it.Delivery().Msg().Data, &it.Value); err != nil {
		_ = it.Reject(ctx, "the codec cannot decode the value: "+err.Error()) // if it fails, the value is delivered again
		return true
	}
	if most := crashes * c.set.tries; it.Tries > most {
		err := it.reject(ctx, fmt.Sprintf("delivered %d times, and not acknowledged", most))
		if !errors.Is(err, ErrFull) || errors.Is(err, ErrUnknown) {
			it.Nak(failTime) // does nothing if the value is a dead letter now
			return true
		} // otherwise a receiver gets it, because nothing else can remove it
	}
	if c.in.Send(ctx, it) != nil {
		return false
	}
	c.cond.Lock()
	it.handed = true
	c.cond.Unlock()
	c.count(func(st *Stats) {
		st.Received++
		if it.Tries > 1 {
			st.Redelivered++
		}
	})
	c.served()
	return true
}

// hold adds the item to the held values. It reports false if its delivery is a duplicate, which must not be handed
// over.
func (c *Chan[T]) hold(ctx context.Context, it *Item[T]) bool {
	c.cond.Lock()
	if at, ok := c.held[it.ID]; ok {
		at.Value.(*Item[T]).d = it.d
		c.cond.Unlock()
		c.count(func(st *Stats) { st.Duplicates++ })
		return false
	}
	if c.seen.has(it.ID) {
		c.cond.Unlock()
		c.count(func(st *Stats) { st.Duplicates++ })
		if attempt.Within(ctx, attempt.Short, it.d.Ack) == nil { // otherwise its lease ends, and it is delivered again
			c.removed()
		}
		return false
	}
	c.held[it.ID] = c.order.PushBack(it)
	c.cond.Broadcast() // for keep
	c.cond.Unlock()
	return true
}

// keep renews the leases of the held values. It gives back the values whose receiver has ended, and the values that no
// fiber of this process wants.
func (c *Chan[T]) keep(ctx context.Context) {
	defer c.giveBack(func(*Item[T]) bool { return true })
	const parts = 3 // renewals in the time of a lease
	var first *Item[T]
	waits := 0
	for c.waitForHeld(ctx) == nil && coir.Sleep(ctx, c.t.Info().Lease/parts) == nil {
		c.giveBack((*Item[T]).abandoned)
		if it := c.unwanted(); it == nil || it != first {
			first, waits = it, 0
		} else if waits++; waits == parts {
			c.cond.Lock()
			c.resting = true
			giveUp := c.giveUp
			c.cond.Unlock()
			giveUp()
		}
		for _, d := range c.leases() {
			d.Progress()
		}
	}
}

// unwanted returns the oldest held value, or nil if a held value has a receiver.
func (c *Chan[T]) unwanted() *Item[T] {
	c.cond.Lock()
	defer c.cond.Unlock()
	var first *Item[T]
	for at := c.order.Front(); at != nil; at = at.Next() {
		it := at.Value.(*Item[T])
		if it.handed {
			return nil
		}
		if first == nil {
			first = it
		}
	}
	return first
}

// waitForHeld waits until a value is held.
func (c *Chan[T]) waitForHeld(ctx context.Context) error {
	c.cond.Lock()
	defer c.cond.Unlock()
	for c.order.Len() == 0 {
		if err := c.cond.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// leases returns the deliveries of the held values.
func (c *Chan[T]) leases() (ds []Delivery) {
	c.cond.Lock()
	defer c.cond.Unlock()
	for at := c.order.Front(); at != nil; at = at.Next() {
		ds = append(ds, at.Value.(*Item[T]).d)
	}
	return ds
}

// giveBack gives back the held values for which f returns true.
func (c *Chan[T]) giveBack(f func(it *Item[T]) bool) {
	var back []*Item[T]
	c.cond.Lock()
	for at := c.order.Front(); at != nil; at = at.Next() {
		back = append(back, at.Value.(*Item[T]))
	}
	c.cond.Unlock()
	for _, it := range back {
		if f(it) {
			it.Nak(0)
		}
	}
}
