package sim

import (
	"context"
	"encoding/xml"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/policy"
)

// chartOf draws a failure and checks that the drawing is well formed and needs nothing from elsewhere.
func chartOf(t *testing.T, f *Failure) string {
	t.Helper()
	var b strings.Builder
	if err := f.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	_, svg, _ := strings.Cut(page, "<svg ")
	svg, _, ok := strings.Cut("<svg "+svg, "</svg>")
	if !ok {
		t.Fatal("there is no svg in\n", page)
	}
	d := xml.NewDecoder(strings.NewReader(svg + "</svg>"))
	for {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
	}
	for _, from := range []string{"http", "src=", "href=", "@import", "<script"} {
		if strings.Contains(page, from) {
			t.Errorf("the chart has %s in it", from)
		}
	}
	return page
}

func TestChartShowsFibersOperationsAndWaits(t *testing.T) {
	page := chartOf(t, found(t, KindDeadlock, crossed))
	for _, text := range []string{">main<", ">lock[0]<", ">recv a<", `class="wait"`, `class="hang"`, ">b, at<",
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
	if !strings.Contains(page, "&#34;&amp;&lt;b&gt;") || strings.Contains(page, "<b>") {
		t.Error("a name is not escaped in\n", page)
	}
}

// messagesOf returns the messages of a program that ends with an error, as "sender's step to receiver's step".
func messagesOf(t *testing.T, fn func(ctx context.Context)) (*Failure, []message) {
	t.Helper()
	f := found(t, KindError, func(ctx context.Context, s *Sim) {
		fn(ctx)
		s.Errorf("end")
	}, WithSchedules(1))
	chartOf(t, f)
	return f, newReport(f).messages()
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

// An arrow stands for a value that was passed on: not for a send that failed, or gave up, nor for one that was dropped.
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

// The trace has the case that a select did, so that its messages are known, and the other cases have none.
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
	})
	if want := []message{{0, 2, true}, {1, 4, true}}; !slices.Equal(all, want) {
		t.Errorf("%v, want %v\n%v", all, want, f)
	}
	says(t, f, " 1 | select → send c ", " 3 | select → recv c ", " 4 | try select d → would block ", " 5 | try select → recv c ",
		" 6 | select → time ", " 8 | select → recv c: closed ")
}

// A fiber that is woken has a case done for it, by another fiber; and a Selector does its case when the fiber runs.
func TestMessagesOfSelectsThatWaited(t *testing.T) {
	f, all := messagesOf(t, func(ctx context.Context) {
		c, d := coir.NewChan[int](0, coir.WithName("c")), coir.NewChan[int](0, coir.WithName("d"))
		ready := coir.NewEvent(coir.WithName("ready"))
		nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
			n.Go("taker", func(ctx context.Context) error {
				_, _ = coir.Select(ctx, d.RecvCase(nil), ready.DoneCase(), c.RecvCase(nil))
				_, _ = coir.Select(ctx, d.RecvCase(nil), ready.DoneCase())
				s := coir.NewSelector()
				defer s.Close()
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
