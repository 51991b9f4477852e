package nats

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
)

// How messages come out of a queue.
//
// A process cannot ask a consumer of many queues for messages of one of them. So while a call of Pull waits, the
// process asks the consumer for as many messages as are wanted, and keeps the messages of other queues for their calls
// of Pull. The consumer has no bound for messages that are not acknowledged, because one queue whose messages are not
// acknowledged would starve the others. Each queue has its own bound instead.
//
// A request first asks for the messages that exist already (no_wait), and then waits for one message. So at most one
// message reaches a process after its last call of Pull has ended. The lease of that message is not renewed before it
// is pulled.
//
// consumers.go says how a group makes its consumers, intake.go how a process asks them for messages, store.go how
// messages get into a queue, and ending.go how a queue ends.

// queue holds what a transport knows about a queue.
type queue struct {
	t        *Transport
	name     string
	capacity int
	stream   string // the stream of its capacity
	subject  string

	doubt  atomic.Bool  // the queue may have been ended
	number atomic.Int64 // 1 + the number of the consumer that has the queue; 0 if unknown

	cond  coir.Cond   // guards the fields below
	until time.Time   // when the doubt ends
	ended bool        // the queue is known to have been ended
	in    *intake     // nil if this process does not pull from the queue
	joins int         // running calls of takeIn: messages may arrive before in is set
	wants int         // messages wanted by waiting Pulls
	asked int         // how many of the wanted messages in asks for; 0 without in
	ready []*delivery // messages that were fetched, and not pulled
}

// Pull implements [remote.Transport].
func (t *Transport) Pull(ctx context.Context, name string, credit int) ([]remote.Delivery, error) {
	if err := coir.Ended(ctx); err != nil {
		return nil, fmt.Errorf("nats: pull from %s: %w", name, err)
	}
	q, err := t.opened(name)
	if err != nil {
		return nil, err
	}
	for {
		in, err := t.takeIn(ctx, q)
		if err != nil {
			return nil, err
		}
		closed := errors.Is(q.checkEnd(ctx), coir.ErrClosed)
		if closed && q.isEmpty(ctx) {
			return nil, fmt.Errorf("nats: pull from %s: %w", name, coir.ErrClosed)
		}
		ds, err := q.take(ctx, in, credit, closed)
		if err != nil {
			return nil, fmt.Errorf("nats: pull from %s: %w", name, err)
		}
		if ds != nil {
			return ds, nil
		}
	}
}

// take returns messages that were fetched, and waits for one. It returns neither messages nor an error if the caller
// must check again whether the queue has ended: because the queue may have been ended, or, if closed is set, because
// its last message may have been removed.
func (q *queue) take(ctx context.Context, in *intake, credit int, closed bool) (ds []remote.Delivery, err error) {
	short := ctx
	again := closed || q.doubt.Load()
	if again {
		limited, cancel := coir.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		short = limited
	}
	q.cond.Lock()
	if len(q.ready) == 0 && q.in == in {
		q.wants += credit
		q.ask()
		q.cond.Unlock()
		in.ask()
		q.cond.Lock()
		if len(q.ready) == 0 && q.in == in && q.ended == closed && q.doubt.Load() == (again && !closed) {
			err = q.cond.Wait(short)
		}
		q.wants -= credit
		if q.in != in { // the queue has another consumer, or none; the caller looks for it
			q.ask()
			q.cond.Unlock()
			return nil, coir.Ended(ctx)
		}
	}
	defer q.cond.Unlock()
	q.forgetOld()
	n := min(credit, len(q.ready))
	for _, d := range q.ready[:n] {
		ds = append(ds, d)
	}
	q.ready = slices.Delete(q.ready, 0, n)
	q.ask() // only once: the intake must not see an intermediate number
	if n > 0 || again && coir.Ended(ctx) == nil {
		err = nil
	}
	return ds, err
}

// ask sets how many messages the intake asks for: those that calls of Pull want, less those that have arrived already.
// The caller holds the lock.
func (q *queue) ask() {
	if q.in != nil {
		n := max(q.wants-len(q.ready), 0)
		q.in.wanted.Add(int64(n - q.asked))
		q.asked = n
	}
}

// forgetOld forgets messages whose lease has ended, because they are delivered again.
func (q *queue) forgetOld() {
	q.ready = slices.DeleteFunc(q.ready, func(d *delivery) bool { return time.Since(d.came) > q.t.set.lease })
}

// fetched keeps a message for the calls of Pull.
func (t *Transport) fetched(m *client.Msg) {
	d := &delivery{t: t, reply: m.Reply, msg: remote.Msg{Data: m.Data}, came: time.Now()}
	meta, errMeta := m.Metadata()
	if errMeta == nil {
		d.tries = int(meta.NumDelivered)
	}
	text := m.Header.Get(jetstream.MsgIDHeader)
	errID := d.msg.ID.UnmarshalText([]byte(text[max(0, len(text)-32):]))
	if errID != nil && errMeta == nil { // a foreign message has no ID; no sender is 0
		d.msg.ID = remote.ID{Seq: meta.Sequence.Stream}
	}
	t.mu.Lock()
	to := t.subjects[m.Subject]
	t.mu.Unlock()
	if to == nil || !to.keep(d) {
		d.Nak(time.Second) // for another process of the group
	}
}

// keep keeps a message if this process pulls from the queue, or is about to. It reports whether it has kept the
// message.
func (q *queue) keep(d *delivery) bool {
	q.cond.Lock()
	defer q.cond.Unlock()
	if q.in == nil && q.joins == 0 {
		return false
	}
	q.ready = append(q.ready, d)
	q.ask()
	q.cond.Signal()
	return true
}

// Leave implements [remote.Transport].
func (t *Transport) Leave(name string) {
	unused, ds := t.leave(name)
	nakAll(ds)
	if unused != nil {
		unused.close() // the server forgets the open request of the intake
	}
}

// leave makes the queue leave its intake. It returns the intake if no queue uses it any more, and the messages to give
// back.
func (t *Transport) leave(name string) (unused *intake, ds []*delivery) {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.queues[name]
	if q == nil {
		return nil, nil
	}
	in, ds := q.giveBack()
	if in == nil {
		return nil, ds
	}
	if in.queues--; in.queues > 0 {
		return nil, ds
	}
	delete(t.intakes, in.key)
	return in, ds
}

// giveBack ends the use of an intake. It returns the intake that the queue had, and the messages that were fetched and
// not pulled, for nakAll.
func (q *queue) giveBack() (in *intake, ds []*delivery) {
	q.cond.Lock()
	defer q.cond.Unlock()
	q.forgetOld()
	in, ds = q.in, q.ready
	if in != nil {
		in.wanted.Add(-int64(q.asked))
	}
	q.in, q.asked, q.ready = nil, 0, nil
	q.cond.Broadcast() // for calls of Pull
	return in, ds
}

// nakAll gives back messages. The caller holds no lock.
func nakAll(ds []*delivery) {
	for _, d := range ds {
		d.Nak(0)
	}
}

// delivery implements remote.Delivery.
type delivery struct {
	t     *Transport
	reply string
	msg   remote.Msg
	tries int
	came  time.Time
}

func (d *delivery) Msg() remote.Msg { return d.msg }

func (d *delivery) Tries() int { return d.tries }

// Ack waits for the answer of the server, which comes when the removal is stored.
func (d *delivery) Ack(ctx context.Context) error {
	if _, err := d.t.answers.ask(ctx, &client.Msg{Subject: d.reply, Data: []byte("+ACK")}); err != nil {
		return fmt.Errorf("nats: acknowledge %v: %w", d.msg.ID, err)
	}
	return nil
}

func (d *delivery) Nak(delay time.Duration) {
	d.t.answers.tell(d.reply, fmt.Appendf(nil, `-NAK {"delay": %d}`, max(delay, 0)))
}

func (d *delivery) Progress() { d.t.answers.tell(d.reply, []byte("+WPI")) }
