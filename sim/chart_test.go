package sim

import (
	"context"
	"encoding/xml"
	"io"
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
	for _, text := range []string{">main<", ">lock[0]<", ">recv a<", `class="wait"`, `class="hang"`, ">waits to receive from b<",
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

func TestMessagesAreGuessesAfterASelect(t *testing.T) {
	f, all := messagesOf(t, func(ctx context.Context) {
		c := coir.NewChan[int](2, coir.WithName("c"))
		_, _ = coir.Select(ctx, c.SendCase(1))
		_ = c.Send(ctx, 2)
		_, _ = c.Recv(ctx) // takes the first, which the trace does not show
	})
	if len(all) != 1 || all[0].sure {
		t.Errorf("%v\n%v", all, f)
	}
}
