package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/chart"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/locks"
)

// chartOf writes the page of a failure, and returns it without its script, which is the same for all failures.
func chartOf(t *testing.T, f *Failure) string {
	t.Helper()
	var b strings.Builder
	if err := f.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	page, _, ok := strings.Cut(b.String(), "</script>") // of the data
	if !ok {
		t.Fatal("there is no data in\n", page)
	}
	return page
}

func TestChartShowsFibersOperationsAndWaits(t *testing.T) {
	f := found(t, KindDeadlock, crossed)
	page := chartOf(t, f)
	for _, text := range []string{`"main"`, `"lock[0]"`, `"recv a"`, "waits to receive from b, at ",
		"deadlock: no fiber can run", "likely cycle", "sim.Replay("} {
		if !strings.Contains(page, text) {
			t.Errorf("the chart does not have %s:\n%s", text, page)
		}
	}
}

func TestChartEscapesNames(t *testing.T) {
	page := chartOf(t, found(t, KindDeadlock, func(ctx context.Context, _ *Sim) {
		c := coir.NewChan[int](0, coir.WithName("<script>alert(1)</script>"))
		_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			n.Go(`"&<b>`, func(ctx context.Context) error {
				_, err := c.Recv(ctx)
				return err
			})
			return nil
		})
	}))
	if !strings.Contains(page, "&#34;&amp;&lt;b&gt;") || !strings.Contains(page, `"\"\u0026\u003cb\u003e"`) ||
		strings.Contains(page, "<b>") || strings.Contains(page, "alert(1)</") {
		t.Error("a name is not escaped in\n", page)
	}
}

// The chart shows what each operation did to which channel or lock, and how long each fiber waited.
func TestChartHasTheStateOfObjects(t *testing.T) {
	f := found(t, KindError, func(ctx context.Context, s *Sim) {
		c, mu := coir.NewChan[int](2, coir.WithName("c")), locks.NewMutex(coir.WithName("mu"))
		nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
			n.Go("taker", func(ctx context.Context) error {
				_, _ = c.Recv(ctx) // waits for the first send
				_ = coir.Sleep(ctx, 2)
				_ = mu.Lock(ctx) // waits for the unlock
				mu.Unlock()
				return nil
			})
			_ = coir.Sleep(ctx, 1)
			_ = c.Send(ctx, 1)
			_ = mu.Lock(ctx)
			_ = c.TrySend(2)
			_ = coir.Sleep(ctx, 5)
			mu.Unlock()
			c.Close()
			_ = c.TrySend(3) // fails
		})
		s.Errorf("end")
	}, WithSchedules(1))
	c := newReport(f).chart()
	if len(c.Objects) != 2 || c.Objects[0].Name != "c" || c.Objects[0].Sort != "channel" || c.Objects[0].Room != 2 ||
		c.Objects[1].Sort != "lock" || !strings.HasPrefix(c.Objects[0].Made, "made at sim/chart_test.go:") {
		t.Errorf("c.Objects = %+v, want the channel c with Room 2, made in sim/chart_test.go, and a lock", c.Objects)
	}
	var got []string
	for _, s := range c.Steps {
		text := c.Of[s.Actor].Name + " " + s.Text
		for _, u := range s.Did {
			text += fmt.Sprintf(", %s %d %d", c.Objects[u.Object].Name, u.What, u.N)
		}
		for _, u := range s.Wants {
			text += fmt.Sprintf(", wants %s %d", c.Objects[u.Object].Name, u.What)
		}
		if s.Until > 0 && s.Until < len(c.Steps) {
			text += ", until " + c.Steps[s.Until].Text
		}
		got = append(got, text)
	}
	for _, want := range []string{
		"taker recv c, c 2 1, wants c 2, until send c", "main send c, c 1 1", "main lock mu, mu 4 1", "main try send c, c 1 1",
		"taker lock mu: waits, mu 4 1, wants mu 4, until unlock mu", "main unlock mu, mu 5 1", "main close c, c 3 1",
		"main try send c → closed, c 0 1", "taker sleep 2ns, until lock mu: waits",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("no step is %q:\n%s", want, strings.Join(got, "\n"))
		}
	}
}

// message is a value that passed from a send to a receive, as steps of the trace.
type message struct {
	send, recv int
	sure       bool
}

// messagesOf returns the messages of a program that ends with an error.
func messagesOf(t *testing.T, fn func(ctx context.Context)) (f *Failure, all []message) {
	t.Helper()
	f = found(t, KindError, func(ctx context.Context, s *Sim) {
		fn(ctx)
		s.Errorf("end")
	}, WithSchedules(1))
	chartOf(t, f)
	c := newReport(f).chart()
	for _, a := range c.Arrows {
		if a.Kind == chart.Message {
			all = append(all, message{c.Steps[a.From].Number - 1, c.Steps[a.To].Number - 1, !a.Guess})
		}
	}
	return f, all
}

func TestMessagesGoFromEachSendToItsReceive(t *testing.T) {
	f, all := messagesOf(t, func(ctx context.Context) {
		c, d := coir.NewChan[int](2, coir.WithName("c")), coir.NewChan[int](2, coir.WithName("d"))
		_, _, _ = c.Send(ctx, 1), d.Send(ctx, 2), c.Send(ctx, 3)
		c.Close()
		_ = c.Send(ctx, 4) // fails
		for range 3 {
			_, _ = c.Recv(ctx) // the third finds it closed and empty
		}
		_, _ = d.Recv(ctx)
	})
	want := []message{{0, 5, true}, {2, 6, true}, {1, 8, true}}
	if len(all) != len(want) {
		t.Fatalf("%v\n%v", all, f)
	}
	for i := range want {
		if all[i] != want[i] {
			t.Errorf("message %d is %v, want %v\n%v", i, all[i], want[i], f)
		}
	}
}

func TestMessagesSkipReceivesThatGaveUp(t *testing.T) {
	f, all := messagesOf(t, func(ctx context.Context) {
		c := coir.NewChan[int](1, coir.WithName("c"))
		_, _ = c.RecvTimeout(ctx, 1)
		_ = c.Send(ctx, 1)
		_, _ = c.Recv(ctx)
	})
	if len(all) != 1 || all[0] != (message{1, 2, true}) {
		t.Errorf("%v\n%v", all, f)
	}
}

func TestMessagesReachAReceiverThatWaits(t *testing.T) {
	f, all := messagesOf(t, func(ctx context.Context) {
		c := coir.NewChan[int](0, coir.WithName("c"))
		_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			n.Go("send", func(ctx context.Context) error { return c.Send(ctx, 1) })
			_, err := c.Recv(ctx)
			return err
		})
	})
	if len(all) != 1 || f.trace[all[0].send].op.Kind != policy.Send || f.trace[all[0].recv].op.Kind != policy.Recv || !all[0].sure {
		t.Errorf("%v\n%v", all, f)
	}
}

// An arrow stands for a value that was passed on, and not for a send that failed, gave up, or dropped its value.
func TestMessagesOnlyOfWhatWasDone(t *testing.T) {
	f, all := messagesOf(t, func(ctx context.Context) {
		c := coir.NewChan[int](1, coir.WithName("c"))
		_ = c.TrySend(1)             // 0
		_ = c.TrySend(2)             // 1: no room
		_ = c.SendTimeout(ctx, 3, 1) // 2: no room
		_, _ = c.TryRecv()           // 3: from 0
		_, _ = c.TryRecv()           // 4: nothing there
		_ = c.Send(ctx, 4)           // 5
		_, _ = c.Recv(ctx)           // 6: from 5
		last := coir.NewChan[int](1, coir.WithName("last"), coir.WithOverflow(coir.OverflowDropOldest))
		_ = last.Send(ctx, 1) // 7
		_ = last.TrySend(2)   // 8: takes its place
		_, _ = last.Recv(ctx) // 9: from 8
		many := coir.NewChan[int](3, coir.WithName("many"))
		_, _ = many.SendMany(ctx, []int{1, 2, 3}) // 10, 11, 12
		_, _ = many.RecvMany(ctx, make([]int, 5)) // 13 and 14: the first, and the others
	})
	want := []message{{0, 3, true}, {5, 6, true}, {8, 9, true}, {10, 13, true}, {11, 14, true}, {12, 14, true}}
	if !slices.Equal(all, want) {
		t.Errorf("%v, want %v\n%v", all, want, f)
	}
	says(t, f, " 2 | try send c → would block ", " 3 | send c → timed out ", " 5 | try recv c → would block ",
		" 9 | try send last → dropped the oldest", "15 | try recv many → 2 values")
}

// The trace records which case of a select happened, so its messages are known. The other cases have no messages.
func TestMessagesOfSelects(t *testing.T) {
	f, all := messagesOf(t, func(ctx context.Context) {
		c, d := coir.NewChan[int](2, coir.WithName("c")), coir.NewChan[int](2, coir.WithName("d"))
		_, _ = coir.Select(ctx, coir.Case{}, c.SendCase(1))                    // 0
		_ = c.Send(ctx, 2)                                                     // 1
		_, _ = coir.Select(ctx, d.RecvCase(nil), c.RecvCase(nil))              // 2: from 0
		_, _ = coir.TrySelect(d.RecvCase(nil))                                 // 3: nothing there
		_, _ = coir.TrySelect(d.RecvCase(nil), c.RecvCase(nil))                // 4: from 1
		_, _ = coir.Select(ctx, d.RecvCase(nil), coir.After(1))                // 5: time
		c.Close()                                                              // 6
		_, _ = coir.Select(ctx, coir.Case{}, d.RecvCase(nil), c.RecvCase(nil)) // 7
		e := coir.NewChan[int](3, coir.WithName("e"))
		_, _ = e.SendMany(ctx, []int{1, 2, 3})                                   // 8, 9, 10
		_, _ = coir.Select(ctx, d.RecvCase(nil), coir.After(1), e.RecvCase(nil)) // 11: one, though it is the third case
	})
	if want := []message{{0, 2, true}, {1, 4, true}, {8, 11, true}}; !slices.Equal(all, want) {
		t.Errorf("%v, want %v\n%v", all, want, f)
	}
	says(t, f, " 1 | select → send c ", " 3 | select → recv c ", " 4 | try select d → would block ", " 5 | try select → recv c ",
		" 6 | select → time ", " 8 | select → recv c: closed ")
}

// The case of a select that waits is done by the fiber that wakes it. A Selector performs its case when its fiber runs.
func TestMessagesOfSelectsThatWaited(t *testing.T) {
	f, all := messagesOf(t, func(ctx context.Context) {
		c, d := coir.NewChan[int](0, coir.WithName("c")), coir.NewChan[int](0, coir.WithName("d"))
		ready := coir.NewEvent(coir.WithName("ready"))
		nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
			n.Go("taker", func(ctx context.Context) error {
				_, _ = coir.Select(ctx, d.RecvCase(nil), ready.DoneCase(), c.RecvCase(nil))
				_, _ = coir.Select(ctx, d.RecvCase(nil), ready.DoneCase())
				s := coir.NewSelector()
				defer s.Clear()
				s.Add(d.RecvCase(nil))
				s.Add(c.RecvCase(nil))
				_, err := s.Wait(ctx)
				return err
			})
			_ = coir.Sleep(ctx, 1)
			_ = c.Send(ctx, 1)
			_ = coir.Sleep(ctx, 1)
			ready.Set()
			_ = coir.Sleep(ctx, 1)
			_ = c.Send(ctx, 1)
		})
	})
	if len(all) != 2 || !all[0].sure || all[1].sure {
		t.Errorf("%v\n%v", all, f)
	}
	says(t, f, "| select → recv c ", "| select → await ready ")
}
