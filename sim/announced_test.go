package sim

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/policy"
)

// Every operation by which fibers can interact is announced, even without a wait, so that another fiber may go first.
//
// Spec: SM-01 (a policy is told before each operation)
func TestEveryOperationIsAnnounced(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(ctx context.Context, n *coir.Nursery, c *coir.Chan[int])
		want policy.Kind
	}{
		{"Send", func(ctx context.Context, _ *coir.Nursery, c *coir.Chan[int]) { _ = c.Send(ctx, 1) }, policy.Send},
		{"SendTimeout", func(ctx context.Context, _ *coir.Nursery, c *coir.Chan[int]) { _ = c.SendTimeout(ctx, 1, time.Second) }, policy.Send},
		{"SendMany", func(ctx context.Context, _ *coir.Nursery, c *coir.Chan[int]) { _, _ = c.SendMany(ctx, []int{1}) }, policy.Send},
		{"TrySend", func(_ context.Context, _ *coir.Nursery, c *coir.Chan[int]) { _ = c.TrySend(1) }, policy.TrySend},
		{"Recv", func(ctx context.Context, _ *coir.Nursery, c *coir.Chan[int]) { _, _ = c.Recv(ctx) }, policy.Recv},
		{"RecvTimeout", func(ctx context.Context, _ *coir.Nursery, c *coir.Chan[int]) { _, _ = c.RecvTimeout(ctx, time.Second) }, policy.Recv},
		{"RecvMany", func(ctx context.Context, _ *coir.Nursery, c *coir.Chan[int]) { _, _ = c.RecvMany(ctx, make([]int, 1)) }, policy.Recv},
		{"RecvBatch", func(ctx context.Context, _ *coir.Nursery, c *coir.Chan[int]) {
			_, _ = c.RecvBatch(ctx, make([]int, 1), time.Second)
		}, policy.Recv},
		{"TryRecv", func(_ context.Context, _ *coir.Nursery, c *coir.Chan[int]) { _, _ = c.TryRecv() }, policy.TryRecv},
		{"All", func(ctx context.Context, _ *coir.Nursery, c *coir.Chan[int]) {
			for range c.All(ctx) {
				break
			}
		}, policy.Recv},
		{"Close", func(_ context.Context, _ *coir.Nursery, c *coir.Chan[int]) { c.Close() }, policy.Close},
		{"Abort", func(_ context.Context, _ *coir.Nursery, c *coir.Chan[int]) { c.Abort(nil) }, policy.Abort},
		{"Select", func(ctx context.Context, _ *coir.Nursery, c *coir.Chan[int]) {
			_, _ = coir.Select(ctx, c.RecvCase(nil))
		}, policy.Select},
		{"SelectPriority", func(ctx context.Context, _ *coir.Nursery, c *coir.Chan[int]) {
			_, _ = coir.SelectPriority(ctx, c.RecvCase(nil))
		}, policy.Select},
		{"TrySelect", func(_ context.Context, _ *coir.Nursery, c *coir.Chan[int]) { _, _ = coir.TrySelect(c.RecvCase(nil)) }, policy.TrySelect},
		{"Selector.Wait", func(ctx context.Context, _ *coir.Nursery, c *coir.Chan[int]) {
			sel := coir.NewSelector()
			sel.Add(c.RecvCase(nil))
			_, _ = sel.Wait(ctx)
			sel.Clear()
		}, policy.Select},
		{"Sleep", func(ctx context.Context, _ *coir.Nursery, _ *coir.Chan[int]) { _ = coir.Sleep(ctx, time.Second) }, policy.Sleep},
		{"Yield", func(ctx context.Context, _ *coir.Nursery, _ *coir.Chan[int]) { _ = coir.Yield(ctx) }, policy.Yield},
		{"Go", func(_ context.Context, n *coir.Nursery, _ *coir.Chan[int]) {
			n.Go("x", func(context.Context) error { return nil })
		}, policy.Go},
		{"Run", func(ctx context.Context, _ *coir.Nursery, _ *coir.Chan[int]) {
			_ = coir.Run(ctx, func(context.Context, *coir.Nursery) error { return nil })
		}, policy.Join},
		{"Wait", func(ctx context.Context, n *coir.Nursery, _ *coir.Chan[int]) {
			_ = n.Go("x", func(context.Context) error { return nil }).Wait(ctx)
		}, policy.Wait},
		{"Nursery.Cancel", func(_ context.Context, n *coir.Nursery, _ *coir.Chan[int]) { n.Cancel(nil) }, policy.Cancel},
		{"cancel of a scope", func(ctx context.Context, _ *coir.Nursery, _ *coir.Chan[int]) {
			_, cancel := coir.WithCancelCause(ctx)
			cancel(errGone)
		}, policy.Cancel},
		{"cancel of a scope with a time", func(ctx context.Context, _ *coir.Nursery, _ *coir.Chan[int]) {
			_, cancel := coir.WithTimeout(ctx, time.Second)
			cancel()
		}, policy.Cancel},
		{"Selector.Add", func(_ context.Context, _ *coir.Nursery, c *coir.Chan[int]) { coir.NewSelector().Add(c.RecvCase(nil)) }, policy.Register},
		{"Selector.Remove", func(context.Context, *coir.Nursery, *coir.Chan[int]) { coir.NewSelector().Remove(0) }, policy.Register},
		{"Sender.Clone", func(context.Context, *coir.Nursery, *coir.Chan[int]) { w, _ := coir.Pipe[int](1); w.Clone() }, policy.Clone},
		{"Receiver.Clone", func(context.Context, *coir.Nursery, *coir.Chan[int]) { _, r := coir.Pipe[int](1); r.Clone() }, policy.Clone},
		{"Sender.Close", func(context.Context, *coir.Nursery, *coir.Chan[int]) { w, r := coir.Pipe[int](1); w.Close(); _ = r }, policy.Close},
		{"Receiver.Close", func(context.Context, *coir.Nursery, *coir.Chan[int]) { w, r := coir.Pipe[int](1); r.Close(); _ = w }, policy.Abort},
		{"Sender.TrySend", func(context.Context, *coir.Nursery, *coir.Chan[int]) { w, _ := coir.Pipe[int](1); _ = w.TrySend(1) }, policy.TrySend},
		{"Pool.Get", func(ctx context.Context, _ *coir.Nursery, _ *coir.Chan[int]) {
			p := coir.NewPool(1, func(context.Context) (int, error) { return 1, nil }, nil)
			_, _ = p.Get(ctx)
		}, policy.Recv},
		{"Pool.Put", func(ctx context.Context, _ *coir.Nursery, _ *coir.Chan[int]) {
			p := coir.NewPool(1, func(context.Context) (int, error) { return 1, nil }, nil)
			v, _ := p.Get(ctx)
			_ = p.Put(v)
		}, policy.TrySend},
		{"Pool.Close", func(context.Context, *coir.Nursery, *coir.Chan[int]) {
			coir.NewPool(1, func(context.Context) (int, error) { return 1, nil }, nil).Close()
		}, policy.Abort},
		{"Ordered.Close", func(context.Context, *coir.Nursery, *coir.Chan[int]) { coir.NewOrdered[int](1).Close() }, policy.Close},
	} {
		t.Run(c.name, func(t *testing.T) {
			var kinds []policy.Kind
			exploreAll(t, RoundRobin(), 1, func(ctx context.Context, _ *Sim) {
				_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
					ch := coir.NewChan[int](2)
					_ = ch.TrySend(1)
					n.Go("idle", func(ctx context.Context) error { return coir.Yield(ctx) }) // so that there is a decision
					n.Go("does", func(ctx context.Context) error { c.do(ctx, n, ch); return nil })
					return nil
				})
			}, func(_ *observed, w *world) {
				for _, e := range w.trace[:w.nsteps] {
					if e.fiber == 2 {
						kinds = append(kinds, e.op.Kind)
					}
				}
			})
			if !slices.Contains(kinds, c.want) {
				t.Errorf("its operations are %v, and %v is not among them", kinds, c.want)
			}
		})
	}
}
