package remote_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/memory"
	"github.com/coir-go/coir/remote/ticket"
	"github.com/coir-go/coir/sim"
)

// A report shows what the function of RecvTx, and the body of a loop over All, wait for: also if that is an operation
// of a package inside of this one.
func TestReportsShowTheInnerWait(t *testing.T) {
	keys, err := ticket.NewKeys(1, make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	resolve := func(ctx context.Context, c *remote.Chan[int], d *ticket.Desk[int], all bool) error {
		use := func(ctx context.Context, it *remote.Item[int]) error {
			x, err := d.Open(ctx, time.Second)
			if err != nil {
				return err
			}
			_, err = d.Resolve(ctx, x.Token(ticket.RightResolve), "event", it.Value)
			return err
		}
		if !all {
			return c.RecvTx(ctx, use)
		}
		for it, err := range c.All(ctx) {
			if err == nil {
				err = use(ctx, it)
			}
			return err
		}
		return nil
	}
	for _, all := range []bool{false, true} {
		res := sim.Explore(func(ctx context.Context, s *sim.Sim) {
			broker := memory.New()
			err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
				c, err := remote.Durable[int](ctx, n, broker.Node("a"), "orders", 4)
				if err != nil {
					return err
				}
				d, err := ticket.New[int](ctx, n, broker.Node("a"), "replies", keys)
				if err != nil {
					return err
				}
				if err := c.Send(ctx, 1); err != nil {
					return err
				}
				if err := resolve(ctx, c, d, all); err != nil {
					return err
				}
				return errors.New("the end")
			})
			s.Fatalf("%v", err)
		}, sim.WithSchedules(1))
		text := fmt.Sprint(res.Failure)
		if !strings.Contains(text, "| Desk.Resolve") || !strings.Contains(text, "| ticket.New") {
			t.Errorf("all %v: the report has not the operations of the desk:\n%s", all, text)
		}
	}
}
