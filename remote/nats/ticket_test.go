package nats_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/soak"
	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/nats"
	"github.com/coir-go/coir/remote/ticket"
)

// replicas are the desks of some replicas of a service. Each has its own connection.
type replicas struct {
	desks []*ticket.Desk[int]
	conns []*client.Conn
}

// service runs f with the replicas of a service on one server.
func service(t testing.TB, count int, f func(ctx context.Context, n *coir.Nursery, r *replicas) error) {
	t.Helper()
	keys, err := ticket.NewKeys(1, bytes.Repeat([]byte{1}, 32))
	if err != nil {
		t.Fatal(err)
	}
	s := single(t, false)
	r := &replicas{}
	var transports []remote.Transport
	for range count {
		nc := connect(t, s)
		r.conns = append(r.conns, nc)
		transports = append(transports, transport(t, nc, nats.WithReplicas(1)))
	}
	err = coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		for _, tr := range transports {
			d, err := ticket.New[int](ctx, n, tr, "payments/webhook", keys)
			if err != nil {
				return err
			}
			defer d.Close()
			r.desks = append(r.desks, d)
		}
		return f(ctx, n, r)
	})
	if err != nil {
		t.Error(err)
	}
}

// Random replicas get the answers for the tickets of three replicas. Some answers arrive twice at the same time, some
// are followed by an answer for another event, and a forged token accompanies each. Each ticket is resumed once, with
// its own answer. There are 10,000 tickets, and a million with COIR_SOAK=1.
func TestTicketsOfThreeReplicas(t *testing.T) {
	const window = 256 // tickets that are open at the same time
	tickets := 10_000
	switch {
	case soak.On():
		tickets = 1_000_000
	case testing.Short():
		tickets = 2_000
	}
	var next, resumed, done, same, late, forged, stored atomic.Int64
	service(t, 3, func(ctx context.Context, _ *coir.Nursery, r *replicas) error {
		one := func(ctx context.Context, i int) error {
			any := func() *ticket.Desk[int] { return r.desks[rand.IntN(len(r.desks))] }
			tk, err := any().Open(ctx, time.Hour)
			if err != nil {
				return err
			}
			token := tk.Token(ticket.RightResolve)
			text := []byte(token.Reveal())
			text[rand.IntN(len(text))] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"[rand.IntN(64)]
			if string(text) != token.Reveal() {
				bad, err := ticket.ParseToken(string(text))
				if err == nil {
					_, err = any().Resolve(ctx, bad, "1", -1)
				}
				if !errors.Is(err, ticket.ErrToken) {
					return fmt.Errorf("forged: %w", err)
				}
				forged.Add(1)
			}
			tell := func(ctx context.Context, event string, v int) error {
				out, err := any().Resolve(ctx, token, event, v)
				switch {
				case out == ticket.OutcomeDone:
					done.Add(1)
				case out == ticket.OutcomeDuplicate:
					same.Add(1)
				case out == ticket.OutcomeStored:
					stored.Add(1)
				case errors.Is(err, ticket.ErrEnded):
					late.Add(1)
				default:
					return err
				}
				return nil
			}
			err = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
				for range 1 + rand.IntN(2) {
					n.Go("event", func(ctx context.Context) error { return tell(ctx, "1", i) })
				}
				return nil
			})
			if err != nil {
				return err
			}
			v, err := tk.Wait(ctx)
			if err != nil || v != i {
				return fmt.Errorf("ticket %d was resumed with %d, %w", i, v, err)
			}
			resumed.Add(1)
			if rand.IntN(8) == 0 {
				return tell(ctx, "2", -2)
			}
			return nil
		}
		return coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			for w := range window {
				n.Go("tickets", func(ctx context.Context) error {
					for i := next.Add(1); i <= int64(tickets); i = next.Add(1) {
						if err := one(ctx, int(i)); err != nil {
							return err
						}
					}
					return nil
				}, coir.WithIndex(w))
			}
			return nil
		})
	})
	t.Logf("%d tickets: %d resumed, %d done, %d duplicates, %d late, %d forged, %d stored", tickets, resumed.Load(),
		done.Load(), same.Load(), late.Load(), forged.Load(), stored.Load())
	if resumed.Load() != int64(tickets) || done.Load() > int64(tickets) { // an answer may be a duplicate of a lost attempt
		t.Error("not each ticket was resumed once")
	}
}

// A replica checks tokens without a message to the server.
func TestCheckSendsNothing(t *testing.T) {
	service(t, 2, func(ctx context.Context, _ *coir.Nursery, r *replicas) error {
		tk, err := r.desks[0].Open(ctx, time.Hour)
		if err != nil {
			return err
		}
		token := tk.Token(ticket.RightResolve)
		text := token.Reveal()
		last := "A"
		if text[55] == 'A' {
			last = "B"
		}
		forged, err := ticket.ParseToken(text[:55] + last)
		if err != nil {
			return err
		}
		var sent atomic.Int32
		for _, subject := range []string{"coir.r.>", "coir.q.>", "coir.t.>"} { // requests, stored answers, other messages
			sub, err := r.conns[0].Subscribe(subject, func(*client.Msg) { sent.Add(1) })
			if err != nil {
				return err
			}
			defer func() { _ = sub.Unsubscribe() }()
		}
		if err := r.conns[0].Flush(); err != nil {
			return err
		}
		for range 10_000 {
			if err := r.desks[1].Check(token, ticket.RightResolve); err != nil {
				return err
			}
			if _, err := r.desks[1].Resolve(ctx, forged, "1", 1); !errors.Is(err, ticket.ErrToken) {
				t.Fatal(err)
			}
			if _, err := r.desks[1].Reject(ctx, token, "1", "no"); !errors.Is(err, ticket.ErrToken) {
				t.Fatal(err)
			}
		}
		// A valid answer is one message, and arrives after all others that the replica has sent.
		if out, err := r.desks[1].Resolve(ctx, token, "1", 1); out != ticket.OutcomeDone || err != nil {
			t.Error(out, err)
		}
		if err := r.conns[0].Flush(); err != nil {
			return err
		}
		if sent.Load() != 1 {
			t.Errorf("%d messages for 30,000 tokens and one answer", sent.Load())
		}
		return nil
	})
}

// An answer for an owner that has left is stored.
func TestStoredAnswers(t *testing.T) {
	service(t, 2, func(ctx context.Context, _ *coir.Nursery, r *replicas) error {
		tk, err := r.desks[0].Open(ctx, time.Hour)
		if err != nil {
			return err
		}
		token := tk.Token(ticket.RightResolve)
		r.desks[0].Close()
		for range 2 {
			out, err := r.desks[1].Resolve(ctx, token, "1", 1)
			if out != ticket.OutcomeStored || err != nil {
				t.Error(out, err)
			}
		}
		return nil
	})
}

// BenchmarkTicket compares the completion of another replica's ticket with a bare request and its answer, by turns.
//
// A completion begins with the text of a token at a replica. The replica parses and checks it, and passes the answer to
// the owner, which checks it again and ends the wait. The rows called whole also include opening the ticket and making
// the token.
func BenchmarkTicket(b *testing.B) {
	for _, flight := range []int{1, 16, 128} {
		b.Run("complete/flight="+strconv.Itoa(flight), func(b *testing.B) { benchmarkTicket(b, flight, false) })
		b.Run("whole/flight="+strconv.Itoa(flight), func(b *testing.B) { benchmarkTicket(b, flight, true) })
	}
}

func benchmarkTicket(b *testing.B, flight int, whole bool) {
	service(b, 2, func(ctx context.Context, _ *coir.Nursery, r *replicas) error {
		sub, err := r.conns[0].Subscribe("bare", func(m *client.Msg) { _ = m.Respond([]byte{'y'}) })
		if err != nil {
			return err
		}
		defer func() { _ = sub.Unsubscribe() }()
		if err := r.conns[0].Flush(); err != nil {
			return err
		}
		x := &comparison{r: r, flight: flight, turns: 1}
		for cost := time.Duration(0); cost < 100*time.Millisecond; { // of a round
			x.turns *= 2
			if cost, err = x.bare(); err != nil {
				return err
			}
		}
		return beside(b, x.turns*flight, func() (time.Duration, error) { return x.tickets(ctx, whole) }, x.bare)
	})
}

// comparison holds the two sides of BenchmarkTicket. In a round, each of flight goroutines or fibers does turns
// operations.
type comparison struct {
	r      *replicas
	flight int
	turns  int
}

// bare makes bare requests in goroutines, and returns how long they took.
func (x *comparison) bare() (time.Duration, error) {
	message := make([]byte, 64) // about as long as the message of a ticket
	var wg sync.WaitGroup
	var failed atomic.Pointer[error]
	began := time.Now()
	for range x.flight {
		wg.Go(func() {
			for range x.turns {
				if _, err := x.r.conns[1].Request("bare", message, time.Minute); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return time.Since(began), nil
}

// opened is an open ticket, and the text of its token.
type opened struct {
	*ticket.Ticket[int]
	text string
}

func (x *comparison) open(ctx context.Context) (o opened, err error) {
	if o.Ticket, err = x.r.desks[0].Open(ctx, time.Minute); err == nil {
		o.text = o.Token(ticket.RightResolve).Reveal()
	}
	return o, err
}

// complete completes a ticket at the other replica, and waits for it.
func (x *comparison) complete(ctx context.Context, o opened) error {
	token, err := ticket.ParseToken(o.text)
	if err == nil {
		_, err = x.r.desks[1].Resolve(ctx, token, "event", 1)
	}
	if err == nil {
		_, err = o.Wait(ctx)
	}
	return err
}

// tickets completes tickets in fibers, and returns how long that took, with opening them if whole is set.
func (x *comparison) tickets(ctx context.Context, whole bool) (took time.Duration, err error) {
	ready := make([]opened, x.flight*x.turns)
	if !whole {
		for i := range ready {
			if ready[i], err = x.open(ctx); err != nil {
				return 0, err
			}
		}
	}
	began := time.Now()
	err = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
		for w := range x.flight {
			n.Go("callbacks", func(ctx context.Context) error {
				for _, o := range ready[w*x.turns : (w+1)*x.turns] {
					var err error
					if whole {
						o, err = x.open(ctx)
					}
					if err == nil {
						err = x.complete(ctx, o)
					}
					if err != nil {
						return err
					}
				}
				return nil
			}, coir.WithIndex(w))
		}
		return nil
	})
	return time.Since(began), err
}
