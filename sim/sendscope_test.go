package sim

import (
	"context"
	"testing"

	"github.com/coir-go/coir"
)

// The end of a scope of Chan.SendScope is a cancel for whatever else uses the scope: DPOR runs both orders.
func TestEndOfASendScopeIsACancel(t *testing.T) {
	verb := &coir.Verb{Name: "send", Waits: "to send to", Ends: "receive from", Of: "shelf"}
	outcomes := map[bool]bool{}
	res := Explore(func(ctx context.Context, _ *Sim) {
		c := coir.NewChan[int](1)
		_ = c.Send(ctx, 1)
		in, end := c.SendScope(ctx, verb)
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			n.Go("ends", func(context.Context) error {
				end()
				return nil
			})
			n.Go("receives", func(context.Context) error {
				_, err := c.Recv(in)
				outcomes[err == nil] = true
				return nil
			})
		})
	}, WithStrategy(func(uint64) Strategy { return DPOR() }), WithSchedules(1000))
	if res.Failure != nil || !res.Complete || len(outcomes) != 2 {
		t.Errorf("outcomes %v, complete: %v, failure: %v", outcomes, res.Complete, res.Failure)
	}
}
