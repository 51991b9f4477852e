package ticket_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/desk"
	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/memory"
	"github.com/coir-go/coir/remote/ticket"
	"github.com/coir-go/coir/sim"
)

// pair runs f with the desks of two replicas.
func pair(t testing.TB, f func(ctx context.Context, a, b *ticket.Desk[string]) error, opts ...ticket.Option) {
	t.Helper()
	within(t, func(ctx context.Context, n *coir.Nursery) error {
		broker := memory.New()
		a, err := ticket.New[string](ctx, n, broker.Node("a"), audience, newKeys(t), opts...)
		if err != nil {
			return err
		}
		b, err := ticket.New[string](ctx, n, broker.Node("b"), audience, newKeys(t), opts...)
		if err != nil {
			return err
		}
		return f(ctx, a, b)
	})
}

// The error says what is wrong with an answer, at the owner and at another replica.
func TestAnEndedTicketStaysEnded(t *testing.T) {
	pair(t, func(ctx context.Context, a, b *ticket.Desk[string]) error {
		both := ticket.RightResolve | ticket.RightReject
		var tokens []ticket.Token
		for i := range 3 {
			tk, err := a.Open(ctx, time.Hour, coir.WithName("order"))
			if err != nil {
				return err
			}
			token := tk.Token(both)
			tokens = append(tokens, token)
			switch i {
			case 0:
				if out, err := b.Resolve(ctx, token, "1", "paid"); out != ticket.OutcomeDone || err != nil {
					t.Error(out, err)
				}
				if v, err := tk.Wait(ctx); v != "paid" || err != nil {
					t.Error(v, err)
				}
			case 1:
				if out, err := b.Reject(ctx, token, "1", "no money"); out != ticket.OutcomeDone || err != nil {
					t.Error(out, err)
				}
				if _, err := tk.Wait(ctx); !errors.Is(err, remote.ErrRejected) || !strings.Contains(err.Error(), "no money") {
					t.Error(err)
				}
			case 2:
				tk.Cancel()
			}
		}
		for _, d := range []*ticket.Desk[string]{a, b} {
			for i, token := range tokens {
				out, err := d.Resolve(ctx, token, "1", "again")
				if i < 2 && (out != ticket.OutcomeDuplicate || err != nil) || i == 2 && !errors.Is(err, ticket.ErrEnded) {
					t.Errorf("ticket %d again: %v, %v", i, out, err)
				}
				if out, err := d.Resolve(ctx, token, "2", "replayed"); !errors.Is(err, ticket.ErrEnded) {
					t.Errorf("ticket %d with another key: %v, %v", i, out, err)
				}
				if _, err := d.Resolve(ctx, token, "", "no key"); err == nil || errors.Is(err, ticket.ErrEnded) {
					t.Error(err)
				}
			}
		}
		return nil
	})
}

// A slot is used again when its tokens have expired. An old token is refused, even if a clock is slightly behind, and
// does not complete the next ticket of the slot.
func TestTokensExpire(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			broker := memory.New()
			a, err := ticket.New[string](ctx, n, broker.Node("a"), audience, newKeys(t))
			if err != nil {
				return err
			}
			defer a.Close()
			b, err := ticket.New[string](ctx, n, broker.Node("b"), audience, newKeys(t))
			if err != nil {
				return err
			}
			defer b.Close()
			tk, err := a.Open(ctx, time.Minute)
			if err != nil {
				return err
			}
			token := tk.Token(ticket.RightResolve)
			if _, err := tk.Wait(ctx); !errors.Is(err, coir.ErrTimeout) {
				s.Errorf("%v", err)
			}
			next, err := a.Open(ctx, time.Minute)
			if err != nil {
				return err
			}
			if err := a.Check(token, ticket.RightResolve); !errors.Is(err, ticket.ErrExpired) {
				s.Errorf("at the owner: %v", err)
			}
			if _, err := b.Resolve(ctx, token, "key", "late"); !errors.Is(err, ticket.ErrExpired) {
				s.Errorf("passed to the owner: %v", err)
			}
			if err := coir.Sleep(ctx, 5*time.Second); err != nil {
				return err
			}
			if err := b.Check(token, ticket.RightResolve); !errors.Is(err, ticket.ErrExpired) {
				s.Errorf("at another: %v", err)
			}
			if out, err := b.Resolve(ctx, next.Token(ticket.RightResolve), "key", "in time"); out != ticket.OutcomeDone {
				s.Errorf("%v, %v", out, err)
			}
			return nil
		})
	}, sim.WithSchedules(10))
}

// An answer for an owner that cannot be reached is stored, up to the capacity of the store. An owner that never returns
// does not get the answer, and neither does the process that replaces it.
func TestTheStoreIsBounded(t *testing.T) {
	within(t, func(ctx context.Context, n *coir.Nursery) error {
		broker := memory.New()
		a, err := ticket.New[string](ctx, n, broker.Node("a"), audience, newKeys(t), ticket.WithStore(2))
		if err != nil {
			return err
		}
		b, err := ticket.New[string](ctx, n, broker.Node("b"), audience, newKeys(t), ticket.WithStore(2))
		if err != nil {
			return err
		}
		var tokens []ticket.Token
		for range 3 {
			tk, err := a.Open(ctx, time.Hour)
			if err != nil {
				return err
			}
			tokens = append(tokens, tk.Token(ticket.RightResolve))
		}
		a.Close()
		if _, err := a.Open(ctx, time.Hour); !errors.Is(err, coir.ErrClosed) {
			t.Errorf("open at a desk that was closed: %v", err)
		}
		again, err := ticket.New[string](ctx, n, broker.Node("a again"), audience, newKeys(t), ticket.WithStore(2))
		if err != nil {
			return err
		}
		if _, err := again.Open(ctx, time.Hour); err != nil {
			return err
		}
		for i, token := range tokens {
			out, err := b.Resolve(ctx, token, "key", "late")
			if i < 2 && out != ticket.OutcomeStored || i == 2 && !errors.Is(err, remote.ErrFull) {
				t.Errorf("answer %d: %v, %v", i, out, err)
			}
		}
		if st := again.Stats(); st.Resolved != 0 || st.Open != 1 || b.Stats().Stored != 2 {
			t.Errorf("%+v, %+v", st, b.Stats())
		}
		return nil
	})
}

// Mistakes of a program get clear errors.
func TestMisuse(t *testing.T) {
	panics := func(what string, f func()) {
		defer func() {
			if recover() == nil {
				t.Errorf("%s: no panic", what)
			}
		}()
		f()
	}
	panics("WithStore", func() { ticket.WithStore(0) })
	pair(t, func(ctx context.Context, a, _ *ticket.Desk[string]) error {
		tk, err := a.Open(ctx, time.Hour)
		if err != nil {
			return err
		}
		panics("no right", func() { tk.Token(0) })
		panics("an invalid right", func() { tk.Token(128) })
		if _, err := a.Open(ctx, time.Hour); !errors.Is(err, coir.ErrWouldBlock) {
			t.Errorf("the desk has a limit: %v", err)
		}
		if a.String() != "ticket.Desk(payments/webhook, 1 open)" {
			t.Error(a)
		}
		return nil
	}, ticket.WithDesk(desk.WithLimit(1), desk.WithOverflow(coir.OverflowFail)))
	if err := new(ticket.Keys).Add(1, secret(1)); err == nil {
		t.Error("keys that were not made by NewKeys")
	}
	for o, text := range []string{"none", "done", "duplicate", "stored", "Outcome(4)"} {
		if ticket.Outcome(o).String() != text {
			t.Error(ticket.Outcome(o))
		}
	}
}

// lonely is a transport that reaches no other process, and perhaps not the broker.
type lonely struct {
	remote.Transport
	away bool
}

func (l lonely) Request(context.Context, string, []byte) ([]byte, error) {
	return nil, fmt.Errorf("%w: no process answers", remote.ErrUnavailable)
}

func (l lonely) Publish(ctx context.Context, queue string, m remote.Msg) error {
	if l.away {
		return fmt.Errorf("%w: connection refused", remote.ErrUnavailable)
	}
	return fmt.Errorf("%s is full: %w", queue, remote.ErrFull)
}

// The error of an answer that reaches nobody says what is known about the owner, and about the broker.
func TestResolveSaysWhyItFails(t *testing.T) {
	within(t, func(ctx context.Context, n *coir.Nursery) error {
		broker := memory.New()
		a, err := ticket.New[string](ctx, n, broker.Node("a"), audience, newKeys(t), ticket.WithNode(7))
		if err != nil {
			return err
		}
		tk, err := a.Open(ctx, time.Hour)
		if err != nil {
			return err
		}
		for _, away := range []bool{false, true} {
			b, err := ticket.New[string](ctx, n, lonely{broker.Node("b"), away}, audience, newKeys(t))
			if err != nil {
				return err
			}
			ctx, cancel := coir.WithTimeout(ctx, 300*time.Millisecond)
			_, err = b.Resolve(ctx, tk.Token(ticket.RightResolve), "event", "paid")
			cancel()
			text, is := "the answer cannot be stored: tickets."+audience+" is full", remote.ErrFull
			if away {
				text, is = "connection refused", context.DeadlineExceeded
			}
			if !errors.Is(err, is) || !strings.Contains(err.Error(), text) ||
				!strings.Contains(err.Error(), "the owner, on node 7, cannot be reached") ||
				!strings.Contains(err.Error(), "no process answers") {
				t.Errorf("away %v: %v", away, err)
			}
		}
		return nil
	})
}
