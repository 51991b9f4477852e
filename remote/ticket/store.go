package ticket

import (
	"context"
	"errors"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/internal/attempt"
)

// The store holds the answers whose owners could not be reached. It is one queue that all replicas share. Each replica
// takes answers from it, completes its own tickets, asks the owners of the others, and gives back the answers whose
// owner still cannot be reached. An answer leaves the store when its owner has replied, whatever the reply, or when its
// token has expired. So an owner that can be reached again takes its answers itself, or gets them from the first
// replica that tries. The answers for an owner that has died stay in the store until they expire.
//
// Rejected: a queue for each owner. A transport never removes a queue, and each start of a process would add one.

const (
	storeBatch = 32              // answers that are taken and passed on together
	storePull  = 5 * time.Second // of one request for answers, which waits at the broker
	storeMin   = 100 * time.Millisecond
	storeMax   = 5 * time.Second // longest delay before an answer is tried again
	openTime   = 5 * time.Second // of one request that makes the queue
)

func (d *Desk[T]) storeName() string { return "tickets." + string(d.audience) }

func (d *Desk[T]) openStore(ctx context.Context, capacity int) error {
	return attempt.Repeat(ctx, openTime, func(ctx context.Context) error { return d.t.Open(ctx, d.storeName(), capacity) })
}

// store stores an answer.
func (d *Desk[T]) store(ctx context.Context, m []byte) error {
	msg := remote.Msg{ID: messageID(m), Data: m}
	return attempt.Repeat(ctx, 0, func(ctx context.Context) error { return d.t.Publish(ctx, d.storeName(), msg) })
}

// passOn passes stored answers on until ctx ends.
func (d *Desk[T]) passOn(ctx context.Context) {
	defer d.t.Leave(d.storeName())
	back := attempt.NewBackoff()
	for coir.Ended(ctx) == nil {
		began := coir.Now(ctx)
		ds, err := d.pull(ctx)
		switch {
		case err == nil:
			d.trouble.Clear()
			d.passAll(ctx, ds)
			back = attempt.NewBackoff()
		case errors.Is(err, coir.ErrClosed): // the transport was closed
			return
		case coir.Now(ctx)-began >= storePull: // there was no answer
			d.ping(ctx)
		default:
			d.trouble.Heard(ctx, err, away)
			if back.Wait(ctx) != nil {
				return
			}
		}
	}
}

const away = "the broker is away"

// ping asks whether the broker can be reached. A pull that finds no answer does not show that, because on some
// transports it waits for the connection to return.
func (d *Desk[T]) ping(ctx context.Context) {
	err := attempt.Ask(ctx, attempt.Short, func(ctx context.Context) error {
		_, err := d.t.Len(ctx, d.storeName())
		return err
	})
	if !errors.Is(err, remote.ErrUnknown) || d.trouble.Is() { // one question without an answer proves nothing
		d.trouble.Heard(ctx, err, away)
	}
}

func (d *Desk[T]) pull(ctx context.Context) ([]remote.Delivery, error) {
	short, cancel := coir.WithTimeout(ctx, storePull)
	defer cancel()
	return d.t.Pull(short, d.storeName(), storeBatch)
}

// passAll passes on answers at the same time, so that an owner that does not reply does not hold up the answers for
// other owners.
func (d *Desk[T]) passAll(ctx context.Context, ds []remote.Delivery) {
	_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
		for i, x := range ds {
			n.Go("pass on an answer", func(ctx context.Context) error {
				d.pass(ctx, x)
				return nil
			}, coir.WithIndex(i))
		}
		return nil
	})
}

// pass passes a stored answer on, and removes it if it need not be tried again.
func (d *Desk[T]) pass(ctx context.Context, x remote.Delivery) {
	m := x.Msg().Data
	a, problem := d.parse(m)
	count := &d.count.dropped
	if problem == 0 {
		count = &d.count.passed
		if d.unreachable(ctx, &a, m) {
			x.Nak(min(storeMin<<min(x.Tries()-1, 10), storeMax))
			return
		}
	}
	if attempt.Within(ctx, attempt.Short, x.Ack) == nil { // otherwise it is delivered again, and is a duplicate
		count.Add(1)
	}
}

// unreachable passes an answer to its owner, and reports whether the owner could not be reached.
func (d *Desk[T]) unreachable(ctx context.Context, a *answer[T], m []byte) bool {
	if a.token.owner() == d.owner {
		return d.completeData(a) == replyAgain
	}
	_, err := d.ask(ctx, m, a.token)
	return err != nil && attempt.Open(err) || coir.Ended(ctx) != nil
}
