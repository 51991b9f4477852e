package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/chart"
	"github.com/coir-go/coir/locks"
	"github.com/coir-go/coir/pubsub"
	"github.com/coir-go/coir/supervise"
)

// The trace shows how each operation ended.
func TestOutcomes(t *testing.T) {
	boom := errors.New("boom")
	for _, c := range []struct {
		name string
		do   func(ctx context.Context)
		want []string
	}{
		{"channels", func(ctx context.Context) {
			c := coir.NewChan[int](1, coir.WithName("c"))
			_ = c.Send(ctx, 1)
			_ = c.TrySend(1)
			_ = c.SendTimeout(ctx, 1, 0)
			_ = c.SendTimeout(ctx, 1, time.Second)
			_, _ = c.Recv(ctx)
			c.Close()
			c.Close()
			_, _ = c.Recv(ctx)
			_ = c.Send(ctx, 1)
			c.Abort(boom)
		}, []string{"send c", "try send c → would block", "send c → timed out", "send c → timed out", "recv c", "close c",
			"close c → no effect", "recv c → closed", "send c → closed", "abort c → no effect"}},
		{"overflow", func(ctx context.Context) {
			c := coir.NewChan[int](1, coir.WithName("c"), coir.WithOverflow(coir.OverflowDropNewest))
			d := coir.NewChan[int](1, coir.WithName("d"), coir.WithOverflow(coir.OverflowFail))
			_, _, _ = c.Send(ctx, 1), c.Send(ctx, 2), c.TrySend(3)
			_, _, _ = d.Send(ctx, 1), d.Send(ctx, 2), d.TrySend(3)
		}, []string{"send c", "send c → dropped", "try send c → dropped", "send d", "send d → would block", "try send d → would block"}},
		{"a context that has ended", func(ctx context.Context) {
			c, e := coir.NewChan[int](1, coir.WithName("c")), coir.NewEvent(coir.WithName("e"))
			m := locks.NewMutex(coir.WithName("m"))
			child := coir.Self(ctx)
			ctx, cancel := coir.WithCancel(ctx)
			cancel()
			_ = c.Send(ctx, 1)
			_, _ = c.Recv(ctx)
			_, _ = coir.Select(ctx, c.RecvCase(nil))
			_ = coir.Sleep(ctx, 1)
			_, _, _ = e.Wait(ctx), m.Lock(ctx), child
		}, []string{"cancel", "send c → cancelled", "recv c → cancelled", "select c → cancelled", "sleep 1ns → cancelled",
			"await e → cancelled", "lock m → cancelled"}},
		{"a context that ends", func(ctx context.Context) {
			c, m := coir.NewChan[int](0, coir.WithName("c")), locks.NewMutex(coir.WithName("m"))
			_ = m.Lock(ctx)
			for range 2 {
				ctx, cancel := coir.WithTimeout(ctx, time.Second)
				_, _ = c.Recv(ctx)
				_ = m.Lock(ctx)
				cancel()
			}
		}, []string{"lock m", "recv c → timed out", "lock m → timed out", "recv c → timed out", "lock m → timed out"}},
		{"objects", func(ctx context.Context) {
			e, p := coir.NewEvent(coir.WithName("e")), coir.NewPromise[int](coir.WithName("p"))
			e.IsSet()
			e.Set()
			e.Set()
			e.IsSet()
			_ = e.Wait(ctx)
			p.Resolve(1)
			p.Resolve(2)
		}, []string{"is set e → no", "set e", "set e → no effect", "is set e → yes", "await e", "resolve p", "resolve p → no effect"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := found(t, KindError, func(ctx context.Context, s *Sim) {
				c.do(ctx)
				s.Errorf("end")
			})
			r := newReport(f)
			var got []string
			for i := range f.trace {
				got = append(got, r.did(&f.trace[i]))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("\n%q, want\n%q", got, c.want)
			}
		})
	}
}

// If one call of the program performs several operations inside the library, they are one row. Operations between
// fibers of the library have no rows.
func TestReportHidesHowTheLibraryWorks(t *testing.T) {
	f := found(t, KindDeadlock, func(ctx context.Context, _ *Sim) {
		prices := pubsub.NewBroadcast[int](coir.WithName("prices"))
		nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
			sub := prices.Subscribe(0)
			n.Go("reader", func(ctx context.Context) error {
				for range 2 {
					if _, err := sub.Recv(ctx); err != nil {
						return err
					}
				}
				return nil
			})
			for i := range 3 {
				_ = prices.Publish(ctx, i)
			}
		})
	})
	says(t, f, "main waits in Broadcast.Publish to send to prices, at sim/tell_test.go:", "| Broadcast.Publish prices ",
		"| Subscription.Recv prices ", "| Broadcast.Publish: send prices * ")
	saysNot(t, f, "| lock", "| recv ", "| wait", "| try")

	f = found(t, KindDeadlock, func(ctx context.Context, _ *Sim) {
		pages := coir.NewOrdered[int](2, coir.WithName("pages"))
		nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
			for i := range 3 {
				_ = pages.Go(ctx, n, "fetch", func(ctx context.Context) (int, error) { return i, coir.Sleep(ctx, time.Second) })
			}
		})
	})
	says(t, f, "main waits in Ordered.Go to send to pages#2 (capacity 2, full), at sim/tell_test.go:", "| NewOrdered pages ", "| Ordered.Go ",
		"  pages#2 was made at sim/tell_test.go:")
	saysNot(t, f, "go fetch", "abort of")

	f = found(t, KindError, func(ctx context.Context, s *Sim) {
		jobs := coir.NewChan[int](0, coir.WithName("jobs"))
		sup := supervise.New([]supervise.Child{{Name: "till", Restart: supervise.RestartTemporary, Run: func(ctx context.Context) error {
			_, err := jobs.RecvTimeout(ctx, 1)
			s.Errorf("%v", err)
			return nil
		}}}, supervise.WithName("shop"))
		_ = sup.Run(ctx)
	})
	says(t, f, "| Supervisor.Run ", "| recv jobs → timed out ")
	saysNot(t, f, "exits", "resolve")

	f = found(t, KindError, func(ctx context.Context, s *Sim) {
		pool := coir.NewPool(1, func(context.Context) (int, error) { return 1, nil }, nil, coir.WithName("conns"))
		v, _ := pool.Get(ctx)
		_ = pool.Put(v)
		items := func(yield func(int) bool) { _ = yield(1) && yield(2) }
		_, _ = coir.Map(ctx, 2, items, func(_ context.Context, i int) (int, error) { return i, nil })
		s.Errorf("end")
	})
	says(t, f, "| NewPool conns ", "| Pool.Get conns ", "| Pool.Put conns ", "| Map  ")
	saysNot(t, f, "try ", "select")
}

// Channels with the same name are distinguished, and those without a name are called by the line that made them.
func TestReportTellsChannelsApart(t *testing.T) {
	f := found(t, KindDeadlock, func(ctx context.Context, _ *Sim) {
		a, b := coir.NewChan[int](1, coir.WithName("jobs")), coir.NewChan[int](0, coir.WithName("jobs"))
		var unnamed [2]*coir.Chan[int]
		for i := range unnamed {
			unnamed[i] = coir.NewChan[int](1)
		}
		var lock locks.Mutex
		_, _, _, _ = a.Send(ctx, 1), unnamed[0].Send(ctx, 1), unnamed[1].Send(ctx, 1), lock.Lock(ctx)
		_ = b.Send(ctx, 1)
	})
	line := f.fibers[0].site.line
	says(t, f, "main waits to send to jobs#2, at ", "| send jobs#1 ", "| send jobs#2 *",
		fmt.Sprintf("  jobs#1, #2 were made at sim/tell_test.go:%d\n", line-7),
		fmt.Sprintf("| send chan@tell_test.go:%d#1 ", line-4), fmt.Sprintf("| send chan@tell_test.go:%d#2 ", line-4),
		fmt.Sprintf(" was first used at sim/tell_test.go:%d\n", line-1))
}

// Texts that the program reports appear where it reports them, in the table and in the chart.
func TestErrorsAreRows(t *testing.T) {
	fn := func(ctx context.Context, s *Sim) {
		_ = coir.Yield(ctx)
		for range 3 {
			s.Sometimes(true, "it is so")
			s.Sometimes(false, "it is not so")
		}
		s.Errorf("the sum is %d\nand not 4", 5)
		_ = coir.Yield(ctx)
		s.Errorf("a text that is longer than what the table has room for in one of its columns, and so is cut")
	}
	f := found(t, KindError, fn)
	says(t, f, "      1 | yield  ", "| :180\n        | sometimes: it is so  ", "| :182\n        | error: the sum is 5  ", "| :185\n      2 | yield  ",
		"| :186\n        | error: a text that is longer than what the table has room for in on…")
	saysNot(t, f, "it is not so")
	if n := strings.Count(f.Error(), "it is so"); n != 1 {
		t.Errorf("it is there %d times", n)
	}
	said := 0
	for _, s := range newReport(f).chart().Steps {
		if s.Kind == chart.Said && strings.HasPrefix(s.Title, "at sim/tell_test.go:") {
			said++
		}
	}
	if page := chartOf(t, f); said != 3 || !strings.Contains(page, `"error: the sum is 5"`) {
		t.Error(said, page)
	}
	// Drawn does not run a schedule twice. Its report has the rows that need no second run.
	says(t, Drawn(func(int) int { return 0 }, fn), "|\n        | error: the sum is 5  ")
}

// Texts of Logf are rows of a report, and are not formatted in schedules that are not reported.
func TestLogsAreRows(t *testing.T) {
	formatted := new(formats)
	f := found(t, KindError, func(ctx context.Context, s *Sim) {
		c := coir.NewChan[int](3, coir.WithName("c"))
		for i := range 3 {
			s.Logf("sends %d %v", i, formatted)
			_ = c.Send(ctx, i)
		}
		if s.Intn(100) == 50 {
			s.Errorf("50")
		}
		s.Logf("after the error")
	}, WithSchedules(2000))
	says(t, f, "| log: sends 0 x ", "| log: sends 1 x ", "| error: 50 ", "| log: after the error ")
	if formatted.times > 3*3 { // the reported schedule, and those shown beside it
		t.Errorf("the texts were formatted %d times", formatted.times)
	}
	many := found(t, KindError, func(ctx context.Context, s *Sim) {
		for i := range 1000 {
			s.Logf("round %d", i)
			_ = coir.Yield(ctx)
		}
		s.Errorf("the end")
	})
	says(t, many, "| log: round 999 ")
	if n := strings.Count(many.Error(), "log: round"); n > 50 {
		t.Errorf("the report has %d of 1000 texts", n)
	}
}

// Logf may be called outside of fibers, and its texts are in the report of Drawn too. If a text has several lines, the
// report shows the first that is not empty.
func TestLogsFromElsewhere(t *testing.T) {
	fn := func(ctx context.Context, s *Sim) {
		done := make(chan struct{})
		for range 2 {
			go func() {
				for range 500 {
					s.Logf("beside")
				}
				done <- struct{}{}
			}()
		}
		<-done
		<-done
		s.Logf("\n\nstate:\r\n a=1")
		s.Sometimes(true, "it is so")
		s.Sometimes(true, "it is so")
		s.Errorf("the end")
	}
	for _, f := range []*Failure{found(t, KindError, fn), Drawn(func(int) int { return 0 }, fn)} {
		says(t, f, "| log: state: … ", "| error: the end ")
		if n := strings.Count(f.Error(), "it is so"); n > 1 {
			t.Errorf("it is there %d times", n)
		}
	}
}

type formats struct{ times int }

func (c *formats) String() string {
	c.times++
	return "x"
}

// A line has one "since".
func TestReportSaysSinceOnce(t *testing.T) {
	f := found(t, KindDeadlock, backToBack)
	for line := range strings.Lines(f.Error()) {
		if strings.Count(line, "since") > 1 {
			t.Error(line)
		}
	}
	says(t, f, "waits to lock b, held by back since step ", ", at sim/tell_test.go:")
}

// backToBack locks two mutexes in two orders.
func backToBack(ctx context.Context, _ *Sim) {
	a, b := locks.NewMutex(coir.WithName("a")), locks.NewMutex(coir.WithName("b"))
	both := func(x, y *locks.Mutex) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			defer x.Unlock()
			defer y.Unlock()
			return errors.Join(x.Lock(ctx), y.Lock(ctx))
		}
	}
	nursery(ctx, func(_ context.Context, n *coir.Nursery) {
		n.Go("there", both(a, b))
		n.Go("back", both(b, a))
	})
}

// An operation of a package in a directory of another one has a name too, so that the report does not show the function
// of coir around it, such as the RecvTx that called the program.
func TestNamesOfOperations(t *testing.T) {
	for function, want := range map[string]string{
		"remote.(*Chan[...]).RecvTx":             "Chan.RecvTx",
		"remote/ticket.(*Desk[...]).Resolve":     "Desk.Resolve",
		"remote/ticket.New[...]":                 "ticket.New",
		"remote/postgres.RecvTx[...]":            "postgres.RecvTx",
		"remote/ticket.(*Desk[...]).forward":     "",
		"remote/ticket.(*Desk[...]).start.func1": "",
		"remote/internal/attempt.Repeat":         "",
		"internal/sched.(*Task).Park":            "",
		"desk.(*Desk[...]).Open":                 "Desk.Open",
	} {
		if got, ok := callOf(library+"/"+function, ""); got != want || ok != (want != "") {
			t.Errorf("%s: %q, %v", function, got, ok)
		}
	}
}
