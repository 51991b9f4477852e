package postgres

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
)

// How a receiver waits.
//
// A receiver that finds no message sets a mark on the queue, looks once more, and waits. The process that stores the
// next message removes the mark, and tells all receivers after its transaction has committed. So no messages are sent
// about a queue whose receivers are busy. And a transaction that stores values never has a NOTIFY, which would lock the
// whole database until the commit is on the disk.
//
// The process may end before it has told the receivers. So a receiver looks again after a second, and when the next
// lease ends.

// queue holds what a transport knows about a queue.
type queue struct {
	t        *Transport
	id       int64
	name     string
	capacity int
	publish  lot[remote.Msg, error]

	cond   coir.Cond // guards the fields below
	looks  uint64    // counts reasons to look for messages
	served io.Closer // ends the messages about the queue; nil if this process does not pull
}

const (
	pollTime  = time.Second           // interval at which a receiver looks again
	pollEnded = 50 * time.Millisecond // the same if the queue was ended and is not empty
)

// opened returns the queue with the name. It fails if the queue has not been opened.
func (t *Transport) opened(name string) (*queue, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if q := t.queues[name]; q != nil {
		return q, nil
	}
	return nil, fmt.Errorf("postgres: the queue %s has not been opened: call Open first", name)
}

// Open implements [remote.Transport].
func (t *Transport) Open(ctx context.Context, name string, capacity int) error {
	what := "open " + name
	type opened struct {
		id       int64
		capacity int
	}
	is, err := call(ctx, t, what, func(ctx context.Context) (is opened, err error) {
		err = t.scan(ctx, "select * from coir.open($1, $2)", []any{name, capacity}, &is.id, &is.capacity)
		return is, err
	}, nil)
	if err != nil {
		return err
	}
	if is.capacity != capacity {
		return fmt.Errorf("postgres: the queue %s has a capacity of %d: it cannot be opened with %d",
			name, is.capacity, capacity)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.queues[name] == nil {
		q := &queue{t: t, id: is.id, name: name, capacity: capacity}
		q.publish = lot[remote.Msg, error]{
			t: t, what: "publish to " + name, do: q.store, size: func(m remote.Msg) int { return len(m.Data) },
		}
		t.queues[name] = q
	}
	return nil
}

// call runs f in a goroutine, and waits until f has returned or ctx has ended. If the result arrives later, call passes
// it to orphan, unless orphan is nil.
func call[R any](ctx context.Context, t *Transport, what string,
	f func(ctx context.Context) (R, error), orphan func(R),
) (R, error) {
	var none R
	if err := coir.Ended(ctx); err != nil {
		return none, fmt.Errorf("postgres: %s: %w", what, err)
	}
	if !t.begin() {
		return none, errClosed
	}
	var left atomic.Bool // the goroutine has a result, or the caller no longer wants one
	done := new(coir.Promise[answer[R]])
	go func() {
		defer t.running.Done()
		ctx, cancel := context.WithTimeout(t.ctx, statementTime)
		defer cancel()
		v, err := f(ctx)
		switch {
		case !left.Swap(true):
			done.Resolve(answer[R]{v, outcome(what, err)})
		case err == nil && orphan != nil:
			orphan(v)
		}
	}()
	a, err := done.Wait(ctx)
	if err != nil {
		if !left.Swap(true) {
			return none, fmt.Errorf("postgres: %s: %w: %w", what, remote.ErrUnknown, err)
		}
		a, _ = done.Wait(context.WithoutCancel(ctx)) // the goroutine is about to set the result
	}
	return a.value, a.err
}

// Publish implements [remote.Transport].
func (t *Transport) Publish(ctx context.Context, name string, m remote.Msg) error {
	q, err := t.opened(name)
	if err != nil {
		return err
	}
	refused, err := q.publish.ask(ctx, m)
	if err == nil {
		err = refused
	}
	return err
}

// store stores messages with one statement. It sends messages with the same ID once.
func (q *queue) store(ctx context.Context, ms []remote.Msg) ([]error, error) {
	var senders, numbers []int64
	var contents [][]byte
	of := make([]int, len(ms)) // the position of each message in the statement
	at := make(map[remote.ID]int, len(ms))
	for i, m := range ms {
		n, ok := at[m.ID]
		if !ok {
			n = len(senders)
			at[m.ID] = n
			senders, numbers = append(senders, int64(m.ID.Sender)), append(numbers, int64(m.ID.Seq))
			contents = append(contents, append([]byte{}, m.Data...)) // not nil, which would be null
		}
		of[i] = n
	}
	t := q.t
	for {
		t.mu.Lock()
		expected := t.expected
		t.mu.Unlock()
		var ended, wakes bool
		var set string
		var refused []int
		err := t.scan(ctx, "select * from coir.publish($1, $2, $3, $4, $5, $6)",
			[]any{q.id, expected, t.set.window.Seconds(), senders, numbers, contents}, &ended, &set, &refused, &wakes)
		if err != nil {
			return nil, err
		}
		if wakes {
			t.Tell(q.subject(), nil)
		}
		out := make([]error, len(ms))
		switch {
		case ended:
			for i := range out {
				out[i] = fmt.Errorf("postgres: %s: %w", q.name, coir.ErrClosed)
			}
			return out, nil
		case set != expected:
			if err := t.strengthen(set); err != nil {
				for i := range out {
					out[i] = err
				}
				return out, nil
			}
			continue
		}
		for i, n := range of {
			if slices.Contains(refused, n+1) {
				out[i] = remote.ErrFull
			}
		}
		return out, nil
	}
}

// Len implements [remote.Transport].
func (t *Transport) Len(ctx context.Context, name string) (int, error) {
	q, err := t.opened(name)
	if err != nil {
		return 0, err
	}
	return call(ctx, t, "count the messages of "+name, func(ctx context.Context) (n int, err error) {
		err = t.scan(ctx, "select count(*) from coir.message where queue = $1", []any{q.id}, &n)
		return n, err
	}, nil)
}

// End implements [remote.Transport].
func (t *Transport) End(ctx context.Context, name string) error {
	q, err := t.opened(name)
	if err != nil {
		return err
	}
	_, err = call(ctx, t, "end "+name, func(ctx context.Context) (struct{}, error) {
		err := t.exec(ctx, "update coir.queue set ended = true where id = $1", q.id)
		return struct{}{}, err
	}, nil)
	if err == nil {
		q.look()
		t.Tell(q.subject(), nil)
	}
	return err
}

// subject returns the subject of messages to the receivers of the queue.
func (q *queue) subject() string { return "queue/" + q.name }

// look wakes the receivers of this process.
func (q *queue) look() {
	q.cond.Lock()
	defer q.cond.Unlock()
	q.looks++
	q.cond.Broadcast()
}

// Pull implements [remote.Transport].
func (t *Transport) Pull(ctx context.Context, name string, credit int) ([]remote.Delivery, error) {
	q, err := t.opened(name)
	if err != nil {
		return nil, err
	}
	for {
		q.cond.Lock()
		looks := q.looks
		q.cond.Unlock()
		ds, err := q.pull(ctx, credit)
		if len(ds) > 0 || err != nil {
			return ds, err
		}
		if err := q.serve(ctx); err != nil {
			return nil, err
		}
		wait, err := q.idle(ctx)
		if err != nil {
			return nil, err
		}
		ds, err = q.pull(ctx, credit)
		if len(ds) > 0 || err != nil {
			return ds, err
		}
		if err := q.wait(ctx, looks, max(wait, time.Millisecond)); err != nil {
			return nil, fmt.Errorf("postgres: pull from %s: %w", name, err)
		}
	}
}

// pull leases the messages that are available. If the caller no longer waits, pull gives them back.
func (q *queue) pull(ctx context.Context, credit int) ([]remote.Delivery, error) {
	t := q.t
	return call(ctx, t, "pull from "+q.name, func(ctx context.Context) (ds []remote.Delivery, err error) {
		c, err := t.acquire(ctx)
		if err != nil {
			return nil, err
		}
		defer c.Release()
		rows, err := c.Query(ctx, t.sql("select * from coir.pull($1, $2, $3)"), q.id, credit, t.set.lease.Seconds())
		if err != nil {
			return nil, err
		}
		found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (*delivery, error) {
			d := &delivery{q: q}
			var sender, number int64
			err := row.Scan(&d.seq, &sender, &number, &d.tries, &d.msg.Data)
			d.msg.ID = remote.ID{Sender: uint64(sender), Seq: uint64(number)}
			return d, err
		})
		slices.SortFunc(found, func(a, b *delivery) int { return cmp.Compare(a.seq, b.seq) }) // an update keeps no order
		for _, d := range found {
			ds = append(ds, d)
		}
		return ds, err
	}, func(ds []remote.Delivery) {
		for _, d := range ds {
			d.Nak(0)
		}
	})
}

// serve makes this process receive notices of messages for the queue.
func (q *queue) serve(ctx context.Context) error {
	q.cond.Lock()
	served := q.served != nil
	q.cond.Unlock()
	if served {
		return nil
	}
	s, err := q.t.Serve(ctx, q.subject(), func([]byte) []byte {
		q.look()
		return nil
	})
	if err != nil {
		return err
	}
	q.cond.Lock()
	if q.served == nil {
		q.served, s = s, nil
	}
	q.cond.Unlock()
	if s != nil { // another Pull serves the subject already
		return s.Close()
	}
	return nil
}

// idle records that a receiver waits. It returns how long the receiver may wait, and an error if the queue was ended
// and is empty.
func (q *queue) idle(ctx context.Context) (time.Duration, error) {
	t, what := q.t, "pull from "+q.name
	type state struct {
		ended, over bool
		due         *float64
	}
	is, err := call(ctx, t, what, func(ctx context.Context) (is state, err error) {
		err = t.scan(ctx, "select * from coir.idle($1)", []any{q.id}, &is.ended, &is.over, &is.due)
		return is, err
	}, nil)
	if err == nil && is.over {
		err = fmt.Errorf("postgres: %s: %w", what, coir.ErrClosed)
	}
	wait := pollTime
	if is.ended {
		wait = pollEnded
	}
	if is.due != nil {
		wait = min(wait, time.Duration(*is.due*float64(time.Second)))
	}
	return wait, err
}

// wait waits until looks differs from the given count, or the time has passed.
func (q *queue) wait(ctx context.Context, looks uint64, limit time.Duration) error {
	short, cancel := coir.WithTimeout(ctx, limit)
	defer cancel()
	q.cond.Lock()
	defer q.cond.Unlock()
	for q.looks == looks {
		if err := q.cond.Wait(short); err != nil {
			return coir.Ended(ctx)
		}
	}
	return nil
}

// Leave implements [remote.Transport]. No messages were fetched ahead.
func (t *Transport) Leave(name string) {
	q, err := t.opened(name)
	if err != nil {
		return
	}
	q.cond.Lock()
	s := q.served
	q.served = nil
	q.cond.Unlock()
	if s != nil {
		_ = s.Close() // never fails
	}
}

// delivery implements remote.Delivery.
type delivery struct {
	q     *queue
	seq   int64
	tries int // the number of the lease
	msg   remote.Msg
	state atomic.Uint32
}

// The states of a delivery.
const (
	isLeased = iota
	isBound  // a transaction that removes the message has locked it
	isReturned
	isRemoved
)

func (d *delivery) Msg() remote.Msg { return d.msg }

func (d *delivery) Tries() int { return d.tries }

// place identifies the row of a message.
type place struct{ queue, seq int64 }

func (d *delivery) place() place { return place{d.q.id, d.seq} }

// Ack also removes a message whose lease has ended. It returns remote.ErrUnavailable if a transaction of another
// receiver is about to remove the message.
func (d *delivery) Ack(ctx context.Context) error {
	switch d.state.Load() {
	case isRemoved:
		return nil
	case isBound:
		return fmt.Errorf("postgres: remove %v of %s: its transaction does so", d.msg.ID, d.q.name)
	}
	locked, err := d.q.t.removals.ask(ctx, d.place())
	if err == nil && locked {
		err = fmt.Errorf("another receiver has locked it: %w", remote.ErrUnavailable)
	}
	if err != nil {
		return fmt.Errorf("postgres: remove %v of %s: %w", d.msg.ID, d.q.name, err)
	}
	d.state.Store(isRemoved)
	return nil
}

// remove removes messages with one statement. It reports for each message whether it is locked.
func (t *Transport) remove(ctx context.Context, ps []place) ([]bool, error) {
	queues, seqs := make([]int64, len(ps)), make([]int64, len(ps))
	for i, p := range ps {
		queues[i], seqs[i] = p.queue, p.seq
	}
	var locked []int
	err := t.scan(ctx, "select coir.remove($1, $2)", []any{queues, seqs}, &locked)
	out := make([]bool, len(ps))
	for _, i := range locked {
		out[i-1] = true
	}
	return out, err
}

func (d *delivery) Nak(delay time.Duration) {
	if d.state.Swap(isReturned) == isRemoved {
		d.state.Store(isRemoved)
		return
	}
	d.q.t.renewals.post(renewal{d, max(delay, 0), true})
}

func (d *delivery) Progress() {
	if d.state.Load() == isLeased {
		d.q.t.renewals.post(renewal{d, d.q.t.set.lease, false})
	}
}

// renewal changes when a lease ends.
type renewal struct {
	d     *delivery
	after time.Duration
	back  bool // the message is given back
}

// renew changes leases with one statement. The last request for a message counts.
func (t *Transport) renew(ctx context.Context, rs []renewal) ([]struct{}, error) {
	last := map[place]renewal{}
	for _, r := range rs {
		last[r.d.place()] = r
	}
	var queues, seqs []int64
	var leases []int
	var seconds []float64
	back := map[*queue]bool{}
	for p, r := range last {
		queues, seqs = append(queues, p.queue), append(seqs, p.seq)
		leases, seconds = append(leases, r.d.tries), append(seconds, r.after.Seconds())
		if r.back {
			back[r.d.q] = true
		}
	}
	err := t.exec(ctx, "select coir.renew($1, $2, $3, $4)", queues, seqs, leases, seconds)
	if err == nil {
		for q := range back {
			t.Tell(q.subject(), nil)
		}
	}
	return make([]struct{}, len(rs)), err
}

var _ remote.Transport = (*Transport)(nil)
