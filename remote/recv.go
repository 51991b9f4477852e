package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote/internal/attempt"
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
		it.Nak(min(failTime<<min(it.Tries, 16), time.Minute))
		return nil
	}
	if poison {
		return it.Reject(ctx, err.Error())
	}
	return it.Reject(ctx, fmt.Sprintf("it has failed, and was delivered %d times: %v", it.Tries, err))
}

// Reject removes the value from the channel, and stores it as a [DeadLetter] with the reason. It returns nil when both
// are stored. After an error other than [ErrSettled], the value is delivered again, and may also be stored as a dead
// letter.
func (it *Item[T]) Reject(ctx context.Context, reason string) error {
	d, err := it.whileHeld(func() {})
	if err != nil {
		return err
	}
	if d != nil {
		if err := it.c.bury(ctx, d, reason); err != nil {
			it.Nak(failTime)
			return err
		}
	}
	return it.Ack(ctx)
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
		if !left {
			f(ctx)
		}
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

// ping asks a broker that had trouble whether it has returned. A pull that finds no value does not show that.
func (c *Chan[T]) ping(ctx context.Context) {
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
	reason := ""
	if err := c.set.codec.Unmarshal(it.Delivery().Msg().Data, &it.Value); err != nil {
		reason = "the codec cannot decode the value: " + err.Error()
	} else if most := crashes * c.set.tries; it.Tries > most {
		reason = fmt.Sprintf("delivered %d times, and not acknowledged", most)
	}
	if reason != "" {
		_ = it.Reject(ctx, reason) // if it fails, the value is delivered again
		return true
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

// abandoned reports whether the receiver of the value has ended.
func (it *Item[T]) abandoned() bool {
	it.c.cond.Lock()
	fiber, ctx := it.holder, it.patient
	it.c.cond.Unlock()
	return ctx != nil && (coir.Ended(ctx) != nil || fiber != nil && fiber.State() == coir.StateEnded)
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
