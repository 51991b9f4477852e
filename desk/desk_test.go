package desk_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/desk"
	"github.com/coir-go/coir/sim"
)

var errLost = errors.New("the connection is lost")

// open opens a ticket in ctx.
func open(t *testing.T, ctx context.Context, d *desk.Desk[int]) *desk.Ticket[int] { //nolint:revive // t comes first
	t.Helper()
	tk, err := d.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return tk
}

// checkEnd checks how a ticket has ended.
func checkEnd(t *testing.T, tk *desk.Ticket[int], v int, err error) {
	t.Helper()
	calls := 0
	tk.OnDone(func(got int, is error) {
		calls++
		if got != v || !errors.Is(is, err) {
			t.Errorf("it ended with %d and %v, want %d and %v", got, is, v, err)
		}
	})
	if calls != 1 {
		t.Errorf("OnDone of a ticket that should have ended has called %d times", calls)
	}
}

// Spec: TK-01 (anything may complete a ticket, once)
// Spec: TK-02 (a ticket never goes back)
// Spec: TK-08 (late, unknown and duplicate completions differ)
// Spec: TK-16 (any goroutine may complete a ticket)
func TestFirstCompletionCounts(t *testing.T) {
	d, other := desk.New[int](desk.WithName("replies")), desk.New[int](desk.WithName("others"))
	ctx := t.Context()
	a, b := open(t, ctx, d), open(t, ctx, d)
	if err := d.Resolve(a.ID(), 1); err != nil {
		t.Fatal(err)
	}
	if err := d.Reject(b.ID(), errLost); err != nil {
		t.Fatal(err)
	}
	checkEnd(t, a, 1, nil)
	checkEnd(t, b, 0, errLost)
	late := open(t, ctx, d)
	if !late.Cancel() || late.Cancel() {
		t.Error("the first Cancel ends the ticket, and no other")
	}
	checkEnd(t, late, 0, context.Canceled)
	for _, c := range []struct {
		id   desk.ID
		want error
	}{
		{a.ID(), desk.ErrDuplicate}, {b.ID(), desk.ErrDuplicate}, {late.ID(), desk.ErrLate},
		{open(t, ctx, other).ID(), desk.ErrForeign}, {changed(t, a.ID(), 31), desk.ErrUnknown},
	} {
		for _, err := range []error{d.Resolve(c.id, 2), d.Reject(c.id, errLost)} {
			if !errors.Is(err, c.want) || !strings.HasPrefix(err.Error(), "desk: replies: ") {
				t.Errorf("%v: %v, want %v", c.id, err, c.want)
			}
		}
	}
	checkEnd(t, a, 1, nil)
	s := d.Stats()
	want := desk.Stats{
		High: 2, Shards: 1, Opened: 3, Resolved: 1, Rejected: 1, Cancelled: 1, Late: 2, Duplicate: 4, Unknown: 2, Foreign: 2,
	}
	if s != want {
		t.Errorf("it has counted\n%+v, want\n%+v", s, want)
	}
}

func TestAFullDeskSaysItsLimit(t *testing.T) {
	d := desk.New[int](desk.WithName("replies"), desk.WithLimit(1), desk.WithOverflow(coir.OverflowFail))
	open(t, t.Context(), d)
	_, err := d.Open(t.Context())
	const want = "desk: replies: full: it has reached its limit of 1"
	if err == nil || err.Error() != want || !errors.Is(err, coir.ErrWouldBlock) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// The error of a timeout has the ticket's name, or that of its desk.
func TestATimeoutNamesTheTicket(t *testing.T) {
	d := desk.New[int](desk.WithName("replies"))
	late, stop := coir.WithTimeout(t.Context(), 100*time.Millisecond) // long enough to open a ticket
	defer stop()
	inContext, err := d.Open(late, coir.WithName("reply to GET"))
	if err != nil {
		t.Fatal(err)
	}
	own, err := d.OpenTimeout(t.Context(), time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	for text, tk := range map[string]*desk.Ticket[int]{
		"desk: reply to GET: coir: timed out": inContext, "desk: replies: coir: timed out": own,
	} {
		_, err := tk.Wait(context.Background())
		ne := net.Error(nil)
		if err == nil || err.Error() != text || !errors.Is(err, coir.ErrTimeout) ||
			!errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &ne) || !ne.Timeout() {
			t.Errorf("got %v, want %s", err, text)
		}
	}
}

// changed returns an ID whose text differs from id's in one digit.
func changed(t *testing.T, id desk.ID, at int) desk.ID {
	t.Helper()
	text := []byte(id.String())
	if text[at] == '0' {
		text[at] = '1'
	} else {
		text[at] = '0'
	}
	got, err := desk.ParseID(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// A ticket ends with its context, of every kind. The ticket's error is the error that a channel operation in that
// context returns, with the same cause.
//
// Spec: TK-13 (a ticket ends with its scope)
// Spec: TK-18 (tickets end with a channel's errors)
func TestTicketEndsWithItsContext(t *testing.T) {
	type end = func(ctx context.Context) (context.Context, func())
	cause := errors.New("why")
	contexts := map[string]struct {
		make end
		want []error
	}{
		"scope": {func(ctx context.Context) (context.Context, func()) {
			c, cancel := coir.WithCancel(ctx)
			return c, cancel
		}, []error{context.Canceled}},
		"scope with a cause": {func(ctx context.Context) (context.Context, func()) {
			c, cancel := coir.WithCancelCause(ctx)
			return c, func() { cancel(cause) }
		}, []error{context.Canceled}},
		"scope in a scope": {func(ctx context.Context) (context.Context, func()) {
			c, cancel := coir.WithCancel(ctx)
			in, _ := coir.WithCancel(c)
			return in, cancel
		}, []error{context.Canceled}},
		"value in a scope": {func(ctx context.Context) (context.Context, func()) {
			c, cancel := coir.WithCancel(ctx)
			return context.WithValue(c, errKey{}, 1), cancel
		}, []error{context.Canceled}},
		"package context": {func(ctx context.Context) (context.Context, func()) {
			c, cancel := context.WithCancelCause(ctx)
			return c, func() { cancel(cause) }
		}, []error{context.Canceled}},
		"time of a scope": {func(ctx context.Context) (context.Context, func()) {
			c, cancel := coir.WithTimeout(ctx, time.Second)
			return c, func() { _ = coir.Sleep(ctx, time.Second); cancel() }
		}, []error{coir.ErrTimeout, context.DeadlineExceeded}},
		"time of package context": {func(ctx context.Context) (context.Context, func()) {
			c, cancel := context.WithTimeout(ctx, time.Second)
			return c, func() { _ = coir.Sleep(ctx, time.Second); synctest.Wait(); cancel() }
		}, []error{coir.ErrTimeout, context.DeadlineExceeded}},
	}
	for name, c := range contexts {
		for _, in := range []string{"goroutine", "fiber"} {
			t.Run(in+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d := desk.New[int](desk.WithName("replies"), desk.WithLimit(4))
					body := func(ctx context.Context) {
						in, end := c.make(ctx)
						stays := open(t, ctx, d)
						a, b := open(t, in, d), open(t, in, d)
						resolved := open(t, in, d)
						if err := d.Resolve(resolved.ID(), 1); err != nil {
							t.Error(err)
						}
						end()
						synctest.Wait()
						for _, want := range c.want {
							checkEnd(t, a, 0, want)
							checkEnd(t, b, 0, want)
						}
						_, same := coir.NewChan[int](0).Recv(in)
						a.OnDone(func(_ int, is error) {
							if !strings.HasSuffix(is.Error(), same.Error()) { // a timeout has a prefix
								t.Errorf("it ended with %v, and a receive with %v", is, same)
							}
						})
						checkEnd(t, resolved, 1, nil)
						if _, err := d.Open(in); !errors.Is(err, c.want[0]) {
							t.Errorf("Open in a context that has ended: %v", err)
						}
						if err := d.Resolve(a.ID(), 1); !errors.Is(err, desk.ErrLate) {
							t.Errorf("Resolve of a ticket whose context has ended: %v", err)
						}
						if err := d.Resolve(stays.ID(), 1); err != nil {
							t.Error(err)
						}
						if d.Len() != 0 {
							t.Errorf("%d open", d.Len())
						}
					}
					if in == "goroutine" {
						body(t.Context())
						return
					}
					rt := coir.NewRuntime(coir.WithWorkers(1))
					if err := rt.Run(t.Context(), func(_ context.Context, n *coir.Nursery) error {
						n.Go("fiber", func(ctx context.Context) error { body(ctx); return nil })
						return nil
					}); err != nil {
						t.Error(err)
					}
					if err := rt.Close(t.Context()); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

type errKey struct{}

// A nursery that ends without being cancelled ends the tickets of its fibers.
//
// Spec: TK-13 (a ticket ends with its scope)
func TestTicketEndsWithItsNursery(t *testing.T) {
	d := desk.New[int](desk.WithName("replies"))
	var left [2]*desk.Ticket[int]
	run(t, func(ctx context.Context, n *coir.Nursery) error {
		left[0] = open(t, ctx, d)
		n.Go("child", func(ctx context.Context) error {
			left[1] = open(t, ctx, d)
			return nil
		})
		return nil
	})
	for _, tk := range left {
		checkEnd(t, tk, 0, context.Canceled)
	}
	if s := d.Stats(); s.Open != 0 || s.Cancelled != 2 {
		t.Errorf("d.Stats() = %+v, want Open 0, Cancelled 2", s)
	}
}

// A ticket's deadline is measured on the clock of its opener. A ticket that ends earlier leaves no timer.
//
// Spec: TK-18 (tickets end with a channel's errors)
func TestTicketEndsAtItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := desk.New[int](desk.WithName("replies"))
		begin := time.Now()
		tk, err := d.OpenTimeout(t.Context(), time.Minute, coir.WithName("slow"))
		if err != nil {
			t.Fatal(err)
		}
		if tk.Name() != "slow" || !strings.HasPrefix(tk.String(), "desk.Ticket(slow, not completed") {
			t.Errorf("it is called %q, described as %v", tk.Name(), tk)
		}
		quick, err := d.OpenTimeout(t.Context(), time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Resolve(quick.ID(), 1); err != nil {
			t.Error(err)
		}
		if _, err := tk.Wait(t.Context()); !errors.Is(err, coir.ErrTimeout) || time.Since(begin) != time.Minute {
			t.Errorf("it ended with %v after %v", err, time.Since(begin))
		}
		checkEnd(t, quick, 1, nil)
		if s := d.Stats(); s.TimedOut != 1 || s.Open != 0 {
			t.Errorf("d.Stats() = %+v, want TimedOut 1, Open 0", s)
		}
		if _, err := d.OpenTimeout(t.Context(), 0); !errors.Is(err, coir.ErrTimeout) {
			t.Errorf("no time at all: %v", err)
		}
	})
}

// Wait in a context that ends earlier than the ticket leaves the ticket open for others.
func TestWaitEndsAlone(t *testing.T) {
	d := desk.New[int](desk.WithName("replies"))
	tk := open(t, t.Context(), d)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tk.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := d.Resolve(tk.ID(), 3); err != nil {
		t.Fatal(err)
	}
	if v, err := tk.Wait(t.Context()); v != 3 || err != nil {
		t.Errorf("%d, %v", v, err)
	}
}

// Spec: TK-21 (a ticket is a case)
func TestTicketInASelect(t *testing.T) {
	d := desk.New[int](desk.WithName("replies"))
	run(t, func(ctx context.Context, n *coir.Nursery) error {
		a, b := open(t, ctx, d), open(t, ctx, d)
		n.Go("resolver", func(context.Context) error { return d.Resolve(b.ID(), 7) })
		var v int
		var fault error
		which, err := coir.Select(ctx, a.DoneCase(&v, &fault), b.DoneCase(&v, &fault))
		if which != 1 || v != 7 || fault != nil || err != nil {
			t.Errorf("case %d, %d, %v, %v", which, v, fault, err)
		}
		return nil
	})
}

// Spec: TK-14 (FailAll ends every open ticket)
func TestFailAllEndsEveryTicket(t *testing.T) {
	d := desk.New[int](desk.WithName("replies"))
	var all []*desk.Ticket[int]
	for i := range 1000 {
		ctx := t.Context()
		if i%3 == 0 {
			ctx = context.Background()
		}
		all = append(all, open(t, ctx, d))
	}
	seen := map[desk.ID]bool{}
	for tk := range d.All() {
		seen[tk.ID()] = true
	}
	if len(seen) != len(all) {
		t.Errorf("All has found %d", len(seen))
	}
	for range d.All() {
		break
	}
	if n := d.FailAll(errLost); n != len(all) {
		t.Errorf("FailAll has ended %d", n)
	}
	for _, tk := range all {
		checkEnd(t, tk, 0, errLost)
		if err := d.Resolve(tk.ID(), 1); !errors.Is(err, desk.ErrLate) {
			t.Error(err)
		}
	}
	if s := d.Stats(); s.Open != 0 || s.Failed != 1000 || s.High != 1000 {
		t.Errorf("d.Stats() = %+v, want Open 0, Failed 1000, High 1000", s)
	}
}

func TestLimitFails(t *testing.T) {
	d := desk.New[int](desk.WithName("replies"), desk.WithLimit(2), desk.WithOverflow(coir.OverflowFail))
	a := open(t, t.Context(), d)
	open(t, t.Context(), d)
	if _, err := d.Open(t.Context()); !errors.Is(err, coir.ErrWouldBlock) || !strings.Contains(err.Error(), "replies") {
		t.Error(err)
	}
	a.Cancel()
	open(t, t.Context(), d)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Open(ended); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if s := d.Stats(); s.Refused != 1 || s.Open != 2 || d.Cap() != 2 || d.Len() != 2 {
		t.Errorf("d.Stats() = %+v, want Refused 1, Open 2, and Cap and Len 2", s)
	}
	if desk.New[int](desk.WithName("x")).Cap() != coir.Unbounded {
		t.Error("a desk without a limit is unbounded")
	}
}

// A full desk makes Open wait until a ticket ends, in any way. If a method of the context panics, no place is taken.
func TestLimitWaits(t *testing.T) {
	d := desk.New[int](desk.WithName("replies"), desk.WithLimit(1))
	run(t, func(ctx context.Context, n *coir.Nursery) error {
		tk := open(t, ctx, d)
		for _, end := range []func(){
			func() { tk.Cancel() },
			func() { _ = d.Resolve(tk.ID(), 1) },
			func() { d.FailAll(errLost) },
		} {
			next := coir.Start(n, "opener", func(context.Context) (*desk.Ticket[int], error) { return d.Open(ctx) })
			for next.Fiber().State() != coir.StateWaiting {
				if err := coir.Yield(ctx); err != nil {
					return err
				}
			}
			end()
			var err error
			if tk, err = next.Wait(ctx); err != nil {
				return err
			}
		}
		short, cancel := coir.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		if _, err := d.Open(short); !errors.Is(err, coir.ErrTimeout) {
			t.Errorf("Open of a full desk: %v", err)
		}
		tk.Cancel()
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic of the context is lost")
				}
			}()
			_, _ = d.Open(badContext{ctx})
		}()
		tk = open(t, ctx, d)
		tk.Cancel()
		return nil
	})
}

type badContext struct{ context.Context }

func (badContext) Done() <-chan struct{} { panic("a context that is broken") }

// Opening a ticket allocates once, with or without a deadline, and however the ticket ends.
func TestOneAllocation(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	d := desk.New[int](desk.WithName("replies"))
	run(t, func(_ context.Context, n *coir.Nursery) error {
		n.Go("fiber", func(ctx context.Context) error {
			for name, f := range map[string]func() error{
				"resolved": func() error {
					tk, err := d.Open(ctx)
					if err != nil {
						return err
					}
					return d.Resolve(tk.ID(), 1)
				},
				"timed": func() error {
					tk, err := d.OpenTimeout(ctx, time.Hour)
					tk.Cancel()
					return err
				},
			} {
				got := testing.AllocsPerRun(1000, func() {
					if err := f(); err != nil {
						t.Error(err)
					}
				})
				if got > 1 {
					t.Errorf("%s: %v allocations", name, got)
				}
			}
			return nil
		})
		return nil
	})
}

// A desk uses more shards when goroutines contend for it, and still finds all of its tickets.
func TestShardsGrow(t *testing.T) {
	d := desk.New[int](desk.WithName("replies"))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range sized(500, 5_000, 50_000) {
				tk, err := d.Open(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				if err := d.Resolve(tk.ID(), 1); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	s := d.Stats()
	t.Logf("%d shards", s.Shards)
	if s.Open != 0 || s.Opened != s.Resolved {
		t.Errorf("the counters are %+v, want Open 0, Opened = Resolved", s)
	}
}

func TestMisuseSaysWhatToDo(t *testing.T) {
	d := desk.New[int](desk.WithName("replies"))
	var zero desk.Desk[int]
	for want, f := range map[string]func(){
		"by New":   func() { _, _ = zero.Open(t.Context()) },
		"made by":  func() { _ = zero.Resolve(desk.ID{}, 1) },
		"Resolve":  func() { _ = d.Reject(desk.ID{}, nil) },
		"error":    func() { d.FailAll(nil) },
		"at least": func() { desk.WithLimit(0) },
		"waits or": func() { desk.WithOverflow(coir.OverflowDropOldest) },
		"call":     func() { open(t, t.Context(), d).OnDone(nil) },
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
					t.Errorf("it says %q, not %q", got, want)
				}
			}()
			f()
		}()
	}
	if s := d.String(); s != "desk.Desk(replies, 1 open)" || d.Name() != "replies" {
		t.Errorf("%q, %q", s, d.Name())
	}
}

// callWhenEnded is a Watcher that calls a function.
type callWhenEnded func()

func (f callWhenEnded) Ended(error) { f() }

// TestCancelAfterTheContextHasEnded checks that a ticket whose context has ended counts as ended by the context, even
// if its owner cancels it before the desk has ended it. The test's watch was started before the desk's, so it is called
// first.
func TestCancelAfterTheContextHasEnded(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		d := desk.New[int](desk.WithName("replies"))
		limited, cancel := coir.WithTimeout(ctx, time.Second)
		defer cancel()
		var early coir.Watch
		var shared atomic.Pointer[desk.Ticket[int]]
		var cancelled atomic.Bool
		cancelled.Store(true)
		if err := early.Start(limited, callWhenEnded(func() { cancelled.Store(shared.Load().Cancel()) })); err != nil {
			s.Fatalf("%v", err)
		}
		tk, err := d.Open(limited)
		if err != nil {
			s.Fatalf("%v", err)
		}
		shared.Store(tk)
		if _, err := tk.Wait(ctx); !errors.Is(err, coir.ErrTimeout) {
			s.Errorf("Wait returned %v, want the error of the context", err)
		}
		if st := d.Stats(); cancelled.Load() || st.TimedOut != 1 || st.Cancelled != 0 || st.Open != 0 {
			s.Errorf("Cancel returned %t, and there are %+v; want one ticket that timed out", cancelled.Load(), st)
		}
	}, sim.WithSchedules(10))
}

// TestZeroID checks that the zero ID is not reported as the ID of another desk.
func TestZeroID(t *testing.T) {
	if err := desk.New[int](desk.WithName("replies")).Resolve(desk.ID{}, 1); !errors.Is(err, desk.ErrUnknown) {
		t.Errorf("Resolve of the zero id: %v, want ErrUnknown", err)
	}
}

// A desk need not have a name.
func TestDeskWithoutAName(t *testing.T) {
	d := desk.New[int](desk.WithLimit(1), desk.WithOverflow(coir.OverflowFail))
	tk := open(t, t.Context(), d)
	_, full := d.Open(t.Context())
	for _, c := range []struct{ got, want string }{
		{d.Name() + tk.Name(), ""},
		{d.String(), "desk.Desk(1 open)"},
		{d.Resolve(desk.ID{}, 1).Error(), "desk: no such ticket"},
		{fmt.Sprint(full), "desk: full: it has reached its limit of 1"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
