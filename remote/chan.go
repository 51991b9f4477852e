package remote

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote/internal/aside"
	"github.com/coir-go/coir/remote/internal/attempt"
	"github.com/coir-go/coir/remote/internal/unique"
)

// Chan is one end of a channel whose other ends may be in other processes. [Durable] and [Volatile] make a Chan, and
// say what they guarantee. Any number of fibers and goroutines may use it.
//
// A Chan does not behave like a Go channel. A network loses requests and answers, so an operation has three outcomes:
// it was done, it was not done, or the outcome is unknown ([ErrUnknown]). Each operation says what its return means.
type Chan[T any] struct {
	name    string
	t       Transport
	n       *coir.Nursery
	set     settings
	stored  bool   // made by Durable
	cap     int    // how many values the channel holds
	sender  uint64 // the sender in the IDs of values
	watch   coir.Watch
	leaving atomic.Bool // Leave was called

	line  line                 // the sends that wait for room
	aside aside.Fibers         // the fibers that receive
	sight sight                // what snapshots show
	posts posts                // of a volatile channel: the values on their way to a receiving process
	in    *coir.Chan[*Item[T]] // the values on their way to a receiver of this process

	cond    coir.Cond // guards the fields below
	seq     uint64
	closers []io.Closer
	left    error              // error of operations after Leave or the end of the context
	failed  error              // error of receives after the transport has failed for good
	begun   bool               // receiving has begun
	resting bool               // pull waits until a fiber of this process receives
	calls   int                // calls of Recv that have no value yet
	giveUp  context.CancelFunc // makes pull give back the values that it offers; nil before pull begins
	stop    []context.CancelFunc
	held    map[ID]*list.Element // elements of order: the values that are leased to this process
	order   list.List            // *Item[T], the oldest first
	seen    seen                 // the values whose effect is done
	wants   wants                // the senders that wait for credit
	buf     []*Item[T]           // of a volatile channel: the values that no receiver has taken
}

// These are time limits. Package attempt limits single attempts, and the caller's context limits the whole operation.
const (
	onceTime = 5 * time.Second        // of a request that cannot be repeated: a late answer is better than none
	openTime = 5 * time.Second        // of one request that makes or ends a queue
	pullTime = 5 * time.Second        // of one request for values, which waits at the broker
	pollMin  = 50 * time.Millisecond  // shortest time after which the first waiting send tries without credit
	pollMax  = time.Second            // longest time after which it does so
	lateMin  = 200 * time.Microsecond // the same for a send that had credit and was refused: room may come late
	lateMax  = 5 * time.Millisecond   // the same for a send that had spare credit and was refused
	failTime = 250 * time.Millisecond // first redelivery delay after a failure
)

// A value becomes a dead letter after crashes*tries deliveries, because it may have crashed its receivers.
const crashes = 5

// Durable opens a channel whose values are stored by the transport. All ends of the channel find each other by its
// name, and have the same capacity: the number of values that can be stored, including those that receivers hold.
//
//   - A Send that returned nil has stored its value, and the value is delivered at least once.
//   - A value stays stored until a receiver removes it: see [Item.Ack].
//   - Values that a sender sends one after the other are stored in that order, and one receiver gets them in that
//     order. A value that is delivered again may come after later ones, and a value whose Send returned [ErrUnknown]
//     may be stored after later ones.
//
// Durable fails if the transport promises less than [MeaningDurable], unless [WithMeaning] accepts that. It panics if
// the name is empty or the capacity is less than 1.
//
// ctx and n belong to the part of the program that uses the channel. When ctx ends, the end is left, as by
// [Chan.Leave]. A receiving end runs fibers in n. If n has a limit (see [coir.Nursery.Limit]), these fibers need a
// place to start, which Recv gives them, and none afterwards.
func Durable[T any](ctx context.Context, n *coir.Nursery, t Transport, name string, capacity int,
	opts ...Option,
) (*Chan[T], error) {
	c := newChan[T](ctx, n, t, name, capacity, opts)
	c.stored = true
	if m := t.Info().Meaning; m < c.set.meaning {
		return nil, fmt.Errorf("remote: %s: this transport promises only that a message is %v, not %v: change the server "+
			"settings that the transport's package names, or accept it with WithMeaning", name, m, c.set.meaning)
	}
	if lease := t.Info().Lease; lease <= 0 {
		return nil, fmt.Errorf("remote: %s: the transport's lease of %v must be positive: change its option", name, lease)
	}
	in, end := c.opening(ctx)
	defer end()
	open := func(name string, capacity int) error {
		return attempt.Repeat(in, openTime, func(ctx context.Context) error {
			err := t.Open(ctx, name, capacity)
			c.heard(in, err)
			return err
		})
	}
	err := open(name, capacity)
	if err == nil {
		err = open(DeadName(name), DeadCapacity)
	}
	if err != nil {
		c.sight.close()
		return nil, fmt.Errorf("remote: open %s: %w", name, err)
	}
	if err := c.join(ctx, in); err != nil {
		return nil, err
	}
	return c, nil
}

// Volatile opens a channel whose values are not stored. Each receiving process has a buffer of the given capacity.
//
//   - A Send that returned nil has put its value into the buffer of one receiving process. The value is lost if that
//     process ends before it receives the value.
//   - A value is received at most once: a Send whose outcome is not known returns [ErrUnknown], and does not try again.
//   - Values that a sender sends one after the other are received in that order if there is one receiving process. A
//     value whose Send returned ErrUnknown may be received after later ones.
//
// ctx and n are as for [Durable]. While an end sends, it runs a fiber in n.
func Volatile[T any](ctx context.Context, n *coir.Nursery, t Transport, name string, capacity int,
	opts ...Option,
) (*Chan[T], error) {
	c := newChan[T](ctx, n, t, name, capacity, opts)
	in, end := c.opening(ctx)
	defer end()
	if err := c.join(ctx, in); err != nil {
		return nil, err
	}
	return c, nil
}

func newChan[T any](
	ctx context.Context, n *coir.Nursery, t Transport, name string, capacity int, opts []Option,
) *Chan[T] {
	if name == "" {
		panic("remote: a channel needs a name: its ends find each other by it")
	}
	if capacity < 1 {
		panic(fmt.Sprintf("remote: the channel %s has a capacity of %d: a network has no rendezvous, so it must "+
			"hold at least one value", name, capacity))
	}
	c := &Chan[T]{name: name, t: t, n: n, set: settle[T](opts), cap: capacity, sender: unique.Number(ctx)}
	c.in = coir.NewChan[*Item[T]](0, coir.WithName(name))
	c.line.init(name)
	c.held = map[ID]*list.Element{}
	return c
}

// join makes the end reachable for receivers that give credit and for receivers that begin. The end is left when ctx
// ends; join waits in the scope in. If join fails, it leaves the end.
func (c *Chan[T]) join(ctx, in context.Context) error {
	if err := c.watch.Start(ctx, (*leaver[T])(c)); err != nil {
		return fmt.Errorf("remote: open %s: %w", c.name, err)
	}
	err := c.serve(in, creditSubject(c.sender), func(data []byte) []byte {
		if n, more, ok := parseCredit(data); ok {
			c.line.credit(n, more)
		}
		return nil
	})
	if err == nil {
		err = c.serve(in, helloSubject(c.name), func([]byte) []byte {
			if c.line.len() > 0 {
				c.want()
			}
			return nil
		})
	}
	if err != nil {
		c.Leave()
		return fmt.Errorf("remote: open %s: %w", c.name, err)
	}
	return nil
}

// want tells the receivers how many sends wait.
func (c *Chan[T]) want() { c.t.Tell(wantSubject(c.name), c.line.message(c.sender, false)) }

// pass gives the credit of a send to the next send, or back to the receivers.
func (c *Chan[T]) pass() {
	if !c.line.credit(1, true) {
		c.t.Tell(wantSubject(c.name), c.line.message(c.sender, true))
	}
}

// serve serves a subject until the end is left. While the transport cannot be reached, serve tries again.
func (c *Chan[T]) serve(ctx context.Context, subject string, f func(data []byte) []byte) error {
	var s io.Closer
	err := attempt.Repeat(ctx, openTime, func(ctx context.Context) (err error) {
		s, err = c.t.Serve(ctx, subject, f)
		return err
	})
	if err != nil {
		return fmt.Errorf("serve %s: %w", subject, err)
	}
	c.cond.Lock()
	left := c.left != nil
	if !left {
		c.closers = append(c.closers, s)
	}
	c.cond.Unlock()
	if left {
		return s.Close()
	}
	return nil
}

// Name returns the name of the channel.
func (c *Chan[T]) Name() string { return c.name }

// Cap returns the capacity of the channel.
func (c *Chan[T]) Cap() int { return c.cap }

// String returns a short description of the channel.
func (c *Chan[T]) String() string {
	kind := "volatile"
	if c.stored {
		kind = "durable"
	}
	return "remote.Chan(" + c.name + ", " + kind + ", capacity " + strconv.Itoa(c.cap) + ")"
}

// Stats are the counters of one end of a channel.
type Stats struct {
	Meaning Meaning // of stored values; only on a durable channel

	Sent    uint64 // sends that returned nil
	Dropped uint64 // values that OverflowDropNewest dropped
	Unknown uint64 // sends that returned ErrUnknown
	Refused uint64 // attempts to send that found the channel full
	Credits uint64 // waiting sends that credit from a receiver has woken

	Received    uint64 // values that were handed to receivers of this process
	Redelivered uint64 // received values that had been delivered before, here or elsewhere
	Acked       uint64 // values that were removed
	Duplicates  uint64 // deliveries not handed over, because the value was held or its effect was done
	Dead        uint64 // values that became dead letters
}

// Stats returns the counters.
func (c *Chan[T]) Stats() Stats {
	credits := c.line.credits() // not under the lock: it is an operation of its own
	c.sight.mu.Lock()
	defer c.sight.mu.Unlock()
	st := c.sight.stats
	if c.stored {
		st.Meaning = c.t.Info().Meaning
	}
	st.Credits = credits
	return st
}

// count changes the counters.
func (c *Chan[T]) count(f func(st *Stats)) {
	c.sight.mu.Lock()
	defer c.sight.mu.Unlock()
	f(&c.sight.stats)
}

// Close closes the channel for all its ends. It returns nil when the closing is stored. Stored values are still
// delivered; then every Recv returns an error that matches [coir.ErrClosed]. Send returns such an error too: at this
// end from now on, at other ends when they learn of the closing. So close a channel only when no other end sends any
// more: a value that another end sends at the same time may be stored after the last receiver has left. Close may be
// repeated. It returns [ErrUnknown] if ctx ends before the outcome is known.
//
// A volatile channel cannot store that it was closed, so Close returns an error: use [Chan.Leave].
func (c *Chan[T]) Close(ctx context.Context) error {
	if !c.stored {
		return fmt.Errorf("remote: %s is volatile: it cannot be closed for all its ends: use Leave", c.name)
	}
	if err := attempt.Repeat(ctx, openTime, func(ctx context.Context) error { return c.t.End(ctx, c.name) }); err != nil {
		return fmt.Errorf("remote: close %s: %w", c.name, err)
	}
	return nil
}

// Leave gives up this end. The fibers of the end stop, values that it has not acknowledged are delivered again, and its
// operations return an error that matches [coir.ErrClosed]. The end is also left when its context ends; then that error
// also matches the error of the context. The other ends are not affected.
func (c *Chan[T]) Leave() {
	if c.leaving.CompareAndSwap(false, true) { // a watch is stopped once
		c.watch.Stop()
	}
	c.leave(errLeft)
}

// errLeft is the error of an operation of an end that was left.
var errLeft = fmt.Errorf("this end was left: %w", coir.ErrClosed)

// leave is Leave without the watch. It does not wait.
func (c *Chan[T]) leave(err error) {
	c.cond.Lock()
	stop, closers := c.stop, c.closers
	c.left, c.stop, c.closers = cmp.Or(c.left, err), nil, nil
	c.cond.Unlock()
	for _, f := range stop {
		f()
	}
	for _, s := range closers {
		_ = s.Close()
	}
	c.line.end()
	c.in.Close()
	c.sight.close()
}

// leaver is a Chan as the owner of its watch.
type leaver[T any] Chan[T]

// Ended implements [coir.Watcher].
func (l *leaver[T]) Ended(err error) {
	(*Chan[T])(l).leave(fmt.Errorf("%w, because its context has ended: %w", errLeft, err))
}

// hasLeft returns an error if this end was left.
func (c *Chan[T]) hasLeft() error {
	c.cond.Lock()
	defer c.cond.Unlock()
	return c.left
}

// All iterates over the values until the channel is closed, like [coir.Chan.All]. If the iteration ends for another
// reason, the last pair has the error.
func (c *Chan[T]) All(ctx context.Context) iter.Seq2[*Item[T], error] {
	return func(yield func(*Item[T], error) bool) {
		for {
			it, err := c.Recv(ctx)
			if errors.Is(err, coir.ErrClosed) && !ofContext(err) {
				return
			}
			if !yield(it, err) || err != nil {
				return
			}
		}
	}
}

// ofContext reports whether an operation has failed because its context has ended.
func ofContext(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
