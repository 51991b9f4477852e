package ticket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/desk"
	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/internal/aside"
	"github.com/coir-go/coir/remote/internal/attempt"
	"github.com/coir-go/coir/remote/internal/trouble"
	"github.com/coir-go/coir/remote/internal/unique"
	"github.com/coir-go/coir/snapshot"
)

// Desk holds the open tickets of one replica, and completes tickets of all replicas with the same audience. The answers
// are values of type T. [New] makes a Desk. Any number of fibers and goroutines may use it.
type Desk[T any] struct {
	t        remote.Transport
	audience []byte
	keys     *Keys
	codec    remote.Codec
	node     uint16          // see WithNode
	owner    uint64          // the number of this desk in its tokens
	ctx      context.Context // never ends; identifies the simulation where no fiber runs
	local    *desk.Desk[T]   // holds the waiters
	watch    coir.Watch
	serves   io.Closer
	stop     atomic.Pointer[context.CancelFunc] // ends the fiber that passes stored answers on
	closing  atomic.Bool                        // Close was called
	closed   atomic.Bool

	trouble trouble.Record // with the broker
	slots   slots
	count   counters
}

type counters struct{ refused, expired, forwarded, stored, passed, dropped atomic.Uint64 }

// ErrEnded means that the ticket has ended: it was completed by an answer with another idempotency key, it was
// cancelled, or its owner has restarted.
var ErrEnded = errors.New("ticket: the ticket has ended before this answer came")

// Option is an option of [New].
type Option func(*settings)

type settings struct {
	codec remote.Codec
	store int
	node  uint16
	local []desk.Option
}

// WithCodec sets how answers become bytes on their way to another replica. The default is [remote.JSON]. All replicas
// must use the same codec.
func WithCodec(c remote.Codec) Option { return func(s *settings) { s.codec = c } }

// WithStore sets how many answers the store holds while their owners cannot be reached. The default is 1000. All
// replicas must use the same number.
func WithStore(n int) Option {
	if n < 1 {
		panic(fmt.Sprintf("ticket: WithStore(%d): the store has room for at least one answer", n))
	}
	return func(s *settings) { s.store = n }
}

// WithNode sets the number of this process. The number is a part of its tokens, and of the subject at which it gets
// answers, so that the permissions of a broker can name that subject: coir.*.ticket.7.* for number 7 on NATS. The
// default is 0. Processes may have the same number.
func WithNode(n uint16) Option { return func(s *settings) { s.node = n } }

// WithDesk sets options of the desk that holds the open tickets of this replica: a limit, or a name other than the
// audience.
func WithDesk(opts ...desk.Option) Option {
	return func(s *settings) { s.local = append(s.local, opts...) }
}

// New returns a desk without tickets. The audience says what the tokens are for, such as "payments/webhook": a token is
// valid only at desks with the same audience and the same keys.
//
// ctx and n belong to the part of the program that uses the desk. When ctx ends, the desk is closed, as by
// [Desk.Close]. A fiber in n passes stored answers on.
func New[T any](ctx context.Context, n *coir.Nursery, t remote.Transport, audience string, keys *Keys, opts ...Option,
) (*Desk[T], error) {
	set := settings{codec: remote.JSON, store: 1000, local: []desk.Option{desk.WithName(audience)}}
	for _, o := range opts {
		o(&set)
	}
	d := &Desk[T]{
		t: t, audience: []byte(audience), keys: keys, codec: set.codec, node: set.node, owner: unique.Number(ctx),
		ctx: coir.Shield(context.Background()),
	}
	d.local = desk.New[T](append(set.local, desk.WithShow(d.show))...)
	if err := d.openStore(ctx, set.store); err != nil {
		return nil, fmt.Errorf("ticket: open the store of %s: %w", audience, err)
	}
	err := attempt.Repeat(ctx, openTime, func(ctx context.Context) (err error) {
		d.serves, err = t.Serve(ctx, ownerSubject(d.node, d.owner), d.serveRequest)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("ticket: serve %s: %w", audience, err)
	}
	if err := d.watch.Start(ctx, (*closer[T])(d)); err != nil {
		d.close()
		return nil, fmt.Errorf("ticket: open the desk %s: %w", audience, err)
	}
	if err := d.start(ctx, n); err != nil {
		d.Close()
		return nil, fmt.Errorf("ticket: open the desk %s: %w", audience, err)
	}
	return d, nil
}

// start starts the fiber that passes stored answers on.
func (d *Desk[T]) start(ctx context.Context, n *coir.Nursery) error {
	var fibers aside.Fibers
	fibers.Go(n, "stored answers of "+string(d.audience), func(in *coir.Nursery) {
		in.Go("pass on stored answers of "+string(d.audience), func(ctx context.Context) error {
			ctx, cancel := coir.WithCancel(ctx)
			defer cancel()
			d.stop.Store(&cancel)
			if !d.closed.Load() { // otherwise Close found no fiber to end
				d.passOn(ctx)
			}
			return nil
		})
	})
	return fibers.Wait(ctx)
}

// show completes the description of the desk in snapshots. It does not wait.
func (d *Desk[T]) show(o *snapshot.Object) {
	o.Note = "across replicas, node " + strconv.Itoa(int(d.node))
	if o.Closed = d.closed.Load(); !o.Closed {
		since, lost := d.t.Lost()
		d.trouble.Show(o, since, lost)
	}
}

// now returns the time of day, by the clock of the simulation if there is one.
func (d *Desk[T]) now() time.Time {
	if coir.Simulated(d.ctx) != nil {
		return time.Unix(0, 0).Add(coir.Now(d.ctx))
	}
	return time.Now()
}

// Close closes the desk: its open tickets end with an error that matches [coir.ErrClosed], and answers for them are
// refused. This replica no longer passes on stored answers of other replicas. Close reports whether this call closed
// the desk: it does not if ctx of [New] has ended.
func (d *Desk[T]) Close() bool {
	if d.closing.CompareAndSwap(false, true) { // a watch is stopped once
		d.watch.Stop()
	}
	return d.close()
}

// close is Close without the watch. It does not wait.
func (d *Desk[T]) close() bool {
	first := d.closed.CompareAndSwap(false, true)
	if stop := d.stop.Load(); stop != nil {
		(*stop)()
	}
	_ = d.serves.Close()
	d.local.FailAll(fmt.Errorf("ticket: the desk %s was closed: %w", d.audience, coir.ErrClosed))
	return first
}

// closer is a Desk as the owner of its watch.
type closer[T any] Desk[T]

// Ended implements [coir.Watcher].
func (c *closer[T]) Ended(error) { (*Desk[T])(c).close() }

// Ticket is one wait for an answer. See [desk.Ticket] for how to wait.
type Ticket[T any] struct {
	*desk.Ticket[T]
	d                *Desk[T]
	slot, generation uint32
	expiry           time.Time
}

// Open opens a ticket, which ends when limit has passed, and at the latest when ctx ends. limit is the life of the
// ticket, not of the call: its tokens expire with it, so there is no form without a limit. If it is not positive, Open
// returns [coir.ErrTimeout]. If the desk is full, Open waits until ctx ends, or fails: see [desk.WithOverflow]. The
// time of that wait does not count. [coir.WithName] gives the ticket a name, which reports show.
func (d *Desk[T]) Open(ctx context.Context, limit time.Duration, opts ...coir.NameOption) (*Ticket[T], error) {
	wait, err := d.local.OpenTimeout(ctx, limit, opts...)
	if err != nil {
		return nil, err
	}
	now := d.now()
	t := &Ticket[T]{Ticket: wait, d: d, expiry: now.Add(limit + time.Second - 1).Truncate(time.Second)}
	t.slot, t.generation = d.slots.open(wait.ID(), t.expiry, now)
	wait.OnDone(func(_ T, err error) {
		d.slots.end(t.slot, t.generation, err == nil || errors.Is(err, remote.ErrRejected))
	})
	if d.closed.Load() { // while it was opened
		wait.Cancel()
		return nil, fmt.Errorf("ticket: the desk %s was closed: %w", d.audience, coir.ErrClosed)
	}
	return t, nil
}

// Token returns a token that has the rights on the ticket. While the same key signs, each call returns the same token.
func (t *Ticket[T]) Token(r Right) Token {
	token := newToken(t.d.node, t.d.owner, t.slot, t.generation, t.expiry, r)
	if !token.canonical() {
		panic(fmt.Sprintf("ticket: Token(%d): a token has RightResolve, RightReject or both", r))
	}
	t.d.keys.sign(token.bytes(), t.d.audience)
	return token
}

// skew is the largest difference between the clocks of two replicas. Only the owner knows exactly when its ticket ends.
const skew = 5 * time.Second

// Check returns nil if the token is valid for this audience and has the rights. Otherwise the error is [ErrToken] or
// [ErrExpired]. Check sends no message, so it does not say whether the ticket is still open: only the owner knows that.
func (d *Desk[T]) Check(token Token, r Right) error {
	err := d.check(token, r)
	switch {
	case errors.Is(err, ErrToken):
		d.count.refused.Add(1)
	case err != nil:
		d.count.expired.Add(1)
	}
	return err
}

func (d *Desk[T]) check(token Token, r Right) error {
	if !token.canonical() || !d.keys.check(token.bytes(), d.audience) || token.rights()&r != r {
		return ErrToken
	}
	until := token.expiry()
	if token.owner() != d.owner {
		until = until.Add(skew)
	}
	if !d.now().Before(until) {
		return ErrExpired
	}
	return nil
}

// Stats are the counters of a desk.
type Stats struct {
	desk.Stats // of the tickets that this replica has opened

	InvalidTokens uint64 // tokens that were refused with ErrToken
	ExpiredTokens uint64 // tokens that were refused with ErrExpired
	Forwarded     uint64 // answers that were passed to their owner at once, and accepted
	Stored        uint64 // answers that were stored
	PassedOn      uint64 // stored answers that were passed to their owner
	Dropped       uint64 // stored answers whose ticket has expired
}

// Stats returns the counters.
func (d *Desk[T]) Stats() Stats {
	return Stats{
		Stats: d.local.Stats(), InvalidTokens: d.count.refused.Load(), ExpiredTokens: d.count.expired.Load(),
		Forwarded: d.count.forwarded.Load(), Stored: d.count.stored.Load(), PassedOn: d.count.passed.Load(),
		Dropped: d.count.dropped.Load(),
	}
}

// Ready implements [remote.Part]. It asks the broker about the stored answers of this audience.
func (d *Desk[T]) Ready(ctx context.Context) error {
	err := coir.ErrClosed
	if !d.closed.Load() {
		_, err = d.t.Len(ctx, d.storeName())
	}
	if err != nil {
		return fmt.Errorf("ticket: the desk %s: %w", d.audience, err)
	}
	return nil
}

// String returns a short description of the desk.
func (d *Desk[T]) String() string {
	return fmt.Sprintf("ticket.Desk(%s, %d open)", d.audience, d.local.Len())
}
