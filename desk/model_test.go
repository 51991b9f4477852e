package desk_test

// Random sequences of operations are performed on a desk and on a slow model of it: a list of tickets with their
// states.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/desk"
)

// model is a desk as a list of tickets.
type model struct {
	limit   int
	tickets []*modelTicket
	ended   int // number of ended tickets
	stats   desk.Stats
}

type modelTicket struct {
	real     *desk.Ticket[int]
	scope    int // index of its scope
	deadline time.Time
	open     bool
	answered bool // an answer ended it
	at       int  // how many tickets had ended before it
	value    int
	err      error
}

// end ends a ticket.
func (m *model) end(x *modelTicket, count *uint64, answered bool, v int, err error) {
	x.open, x.answered, x.value, x.err, x.at = false, answered, v, err, m.ended
	m.ended++
	m.stats.Open--
	*count++
}

// complete models Resolve, or Reject if err is not nil. It returns the errors that the desk may return.
func (m *model) complete(x *modelTicket, count *uint64, v int, err error) []error {
	switch {
	case x.open:
		m.end(x, count, true, v, err)
		return []error{nil}
	case m.ended-x.at <= 64:
		if x.answered {
			return []error{desk.ErrDuplicate}
		}
		return []error{desk.ErrLate}
	case x.answered:
		return []error{desk.ErrDuplicate, desk.ErrUnknown}
	}
	return []error{desk.ErrLate, desk.ErrUnknown}
}

func (m *model) count(err error) {
	switch {
	case errors.Is(err, desk.ErrDuplicate):
		m.stats.Duplicate++
	case errors.Is(err, desk.ErrLate):
		m.stats.Late++
	case errors.Is(err, desk.ErrUnknown):
		m.stats.Unknown++
	case errors.Is(err, desk.ErrForeign):
		m.stats.Foreign++
	}
}

// expire ends the tickets whose deadline has passed.
func (m *model) expire() {
	for _, x := range m.tickets {
		if x.open && !x.deadline.IsZero() && !x.deadline.After(time.Now()) {
			m.end(x, &m.stats.TimedOut, false, 0, coir.ErrTimeout)
		}
	}
}

// modelScope is a context in which tickets are opened.
type modelScope struct {
	ctx    context.Context
	cancel context.CancelFunc
	ended  bool
}

// Spec: TK-02 (a ticket never goes back)
// Spec: TK-08 (late, unknown and duplicate completions differ)
// Spec: TK-09 (cancelling removes a waiting ticket)
// Spec: TK-13 (a ticket ends with its scope)
// Spec: TK-14 (FailAll ends every open ticket)
func TestDeskAgainstModel(t *testing.T) {
	for range sized(20, 200, 5_000) {
		seed := rand.Uint64()
		synctest.Test(t, func(t *testing.T) {
			if err := script(t.Context(), rand.New(rand.NewPCG(seed, 0)), 300); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		})
	}
}

// FuzzDesk takes the sequences from the fuzzer.
func FuzzDesk(f *testing.F) {
	f.Add(uint64(1), uint16(100))
	f.Fuzz(func(t *testing.T, seed uint64, steps uint16) {
		synctest.Test(t, func(t *testing.T) {
			if err := script(t.Context(), rand.New(rand.NewPCG(seed, 1)), int(steps%500)); err != nil {
				t.Fatal(err)
			}
		})
	})
}

// script performs random steps on a desk and on the model, and compares them.
func script(ctx context.Context, rnd *rand.Rand, steps int) error {
	m := &model{limit: 1 + rnd.IntN(100)}
	d := desk.New[int](desk.WithName("replies"), desk.WithLimit(m.limit), desk.WithOverflow(coir.OverflowFail))
	other := desk.New[int](desk.WithName("others"))
	foreign, err := other.Open(ctx)
	if err != nil {
		return err
	}
	scopes := []*modelScope{{ctx: context.Background(), cancel: func() {}}}
	defer func() {
		for _, s := range scopes {
			s.cancel()
		}
		synctest.Wait()
	}()
	for step := range steps {
		if err := m.step(ctx, rnd, d, &scopes, foreign.ID()); err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
		if err := m.compare(d); err != nil {
			return fmt.Errorf("after step %d: %w", step, err)
		}
	}
	n := m.stats.Open
	for _, x := range m.tickets {
		if x.open {
			m.end(x, &m.stats.Failed, false, 0, errLost)
		}
	}
	if got := d.FailAll(errLost); got != n {
		return fmt.Errorf("FailAll ended %d, want %d", got, n)
	}
	return m.compare(d)
}

func (m *model) step(ctx context.Context, rnd *rand.Rand, d *desk.Desk[int], scopes *[]*modelScope, foreign desk.ID) error {
	var x *modelTicket
	if len(m.tickets) > 0 {
		x = m.tickets[rnd.IntN(len(m.tickets))]
		if rnd.IntN(2) == 0 {
			x = m.tickets[len(m.tickets)-1-rnd.IntN(min(20, len(m.tickets)))]
		}
	}
	what := rnd.IntN(20)
	if x == nil {
		what = 0
	}
	v := rnd.Int()
	switch what {
	case 0, 1, 2, 3, 4, 5:
		return m.open(rnd, d, *scopes)
	case 6, 7, 8, 9:
		return m.check(d.Resolve(x.real.ID(), v), m.complete(x, &m.stats.Resolved, v, nil))
	case 10, 11:
		return m.check(d.Reject(x.real.ID(), errLost), m.complete(x, &m.stats.Rejected, 0, errLost))
	case 12, 13:
		want := x.open
		if want {
			m.end(x, &m.stats.Cancelled, false, 0, context.Canceled)
		}
		if got := x.real.Cancel(); got != want {
			return fmt.Errorf("Cancel returned %v", got)
		}
	case 14:
		return m.check(d.Resolve(foreign, v), []error{desk.ErrForeign})
	case 15:
		time.Sleep(time.Duration(rnd.IntN(20)) * time.Second)
		synctest.Wait()
		m.expire()
	case 16:
		var s modelScope
		switch rnd.IntN(3) {
		case 0:
			s.ctx, s.cancel = coir.WithCancel(ctx)
		case 1:
			s.ctx, s.cancel = context.WithCancel(ctx)
		case 2:
			up := (*scopes)[rnd.IntN(len(*scopes))]
			if up.ended {
				return nil
			}
			s.ctx, s.cancel = context.WithValue(up.ctx, errKey{}, v), func() {}
			if up.ctx == context.Background() {
				break
			}
			return nil // it would end with its parent, which the model does not follow
		}
		*scopes = append(*scopes, &s)
	case 17, 18:
		if i := rnd.IntN(len(*scopes)); i > 0 {
			m.cancel(i, (*scopes)[i])
		}
	case 19:
		if rnd.IntN(10) > 0 {
			return nil
		}
		n := 0
		for _, x := range m.tickets {
			if x.open {
				m.end(x, &m.stats.Failed, false, 0, errLost)
				n++
			}
		}
		if got := d.FailAll(errLost); got != n {
			return fmt.Errorf("FailAll ended %d, want %d", got, n)
		}
	}
	return nil
}

func (m *model) open(rnd *rand.Rand, d *desk.Desk[int], scopes []*modelScope) error {
	i := rnd.IntN(len(scopes))
	x := &modelTicket{scope: i, open: true}
	var err error
	if rnd.IntN(2) == 0 {
		limit := time.Duration(1+rnd.IntN(30)) * time.Second
		x.deadline = time.Now().Add(limit)
		x.real, err = d.OpenTimeout(scopes[i].ctx, limit)
	} else {
		x.real, err = d.Open(scopes[i].ctx)
	}
	switch {
	case scopes[i].ended:
		if !errors.Is(err, context.Canceled) {
			return fmt.Errorf("Open in an ended context: %w", err)
		}
	case m.stats.Open == m.limit:
		m.stats.Refused++
		if !errors.Is(err, coir.ErrWouldBlock) {
			return fmt.Errorf("Open of a full desk: %w", err)
		}
	case err != nil:
		return err
	default:
		m.tickets = append(m.tickets, x)
		m.stats.Opened++
		m.stats.Open++
		m.stats.High = max(m.stats.High, m.stats.Open)
	}
	return nil
}

// cancel cancels scope i and ends its tickets.
func (m *model) cancel(i int, s *modelScope) {
	s.cancel()
	synctest.Wait()
	if s.ctx.Err() == nil {
		return
	}
	s.ended = true
	for _, x := range m.tickets {
		if x.open && x.scope == i {
			m.end(x, &m.stats.Cancelled, false, 0, context.Canceled)
		}
	}
}

// check checks that the desk returned one of the errors that the model allows.
func (m *model) check(got error, want []error) error {
	m.count(got)
	for _, w := range want {
		if errors.Is(got, w) && (w != nil || got == nil) {
			return nil
		}
	}
	return fmt.Errorf("a completion returned %w, want one of %v", got, want)
}

// compare compares the desk with the model.
func (m *model) compare(d *desk.Desk[int]) error {
	m.stats.Shards = d.Stats().Shards
	if got := d.Stats(); got != m.stats {
		return fmt.Errorf("it counts\n%+v, want\n%+v", got, m.stats)
	}
	open := map[desk.ID]bool{}
	for tk := range d.All() {
		open[tk.ID()] = true
	}
	for i, x := range m.tickets {
		if open[x.real.ID()] != x.open {
			return fmt.Errorf("ticket %d is open: %v, want %v", i, !x.open, x.open)
		}
		if x.open {
			continue
		}
		v, err := x.real.Wait(context.Background())
		if v != x.value || !errors.Is(err, x.err) || (err == nil) != (x.err == nil) {
			return fmt.Errorf("ticket %d ended with %d and %w, want %d and %w", i, v, err, x.value, x.err)
		}
	}
	if len(open) != m.stats.Open {
		return fmt.Errorf("All has found %d, want %d", len(open), m.stats.Open)
	}
	return nil
}
