package sim

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/coir-go/coir"
)

// Every operation by which fibers can tell each other something is announced, also where it need not wait: somebody else may go first.
//
// Spec: SM-01 (a policy is told before each operation)
func TestEveryOperationIsAnnounced(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(ctx context.Context, n *coir.Nursery, c *coir.Chan[int])
		want coir.OpKind
	}{
		{"Send", func(ctx context.Context, _ *coir.Nursery, c *coir.Chan[int]) { _ = c.Send(ctx, 1) }, coir.OpSend},
		{"SendTimeout", func(ctx context.Context, _ *coir.Nursery, c *coir.Chan[int]) { _ = c.SendTimeout(ctx, 1, time.Second) }, coir.OpSend},
		{"SendMany", func(ctx context.Context, _ *coir.Nursery, c *coir.Chan[int]) { _, _ = c.SendMany(ctx, []int{1}) }, coir.OpSend},
		{"TrySend", func(_ context.Context, _ *coir.Nursery, c *coir.Chan[int]) { _ = c.TrySend(1) }, coir.OpTrySend},
		{"Recv", func(ctx context.Context, _ *coir.Nursery, c *coir.Chan[int]) { _, _ = c.Recv(ctx) }, coir.OpRecv},
		{"RecvTimeout", func(ctx context.Context, _ *coir.Nursery, c *coir.Chan[int]) { _, _ = c.RecvTimeout(ctx, time.Second) }, coir.OpRecv},
		{"RecvMany", func(ctx context.Context, _ *coir.Nursery, c *coir.Chan[int]) { _, _ = c.RecvMany(ctx, make([]int, 1)) }, coir.OpRecv},
		{"TryRecv", func(_ context.Context, _ *coir.Nursery, c *coir.Chan[int]) { _, _ = c.TryRecv() }, coir.OpTryRecv},
		{"All", func(ctx context.Context, _ *coir.Nursery, c *coir.Chan[int]) {
			for range c.All(ctx) {
				break
			}
		}, coir.OpRecv},
		{"Close", func(_ context.Context, _ *coir.Nursery, c *coir.Chan[int]) { c.Close() }, coir.OpClose},
		{"Abort", func(_ context.Context, _ *coir.Nursery, c *coir.Chan[int]) { c.Abort(nil) }, coir.OpAbort},
		{"Select", func(ctx context.Context, _ *coir.Nursery, c *coir.Chan[int]) {
			_, _ = coir.Select(ctx, c.RecvCase(nil))
		}, coir.OpSelect},
		{"SelectPriority", func(ctx context.Context, _ *coir.Nursery, c *coir.Chan[int]) {
			_, _ = coir.SelectPriority(ctx, c.RecvCase(nil))
		}, coir.OpSelect},
		{"TrySelect", func(_ context.Context, _ *coir.Nursery, c *coir.Chan[int]) { _, _ = coir.TrySelect(c.RecvCase(nil)) }, coir.OpTrySelect},
		{"Selector.Wait", func(ctx context.Context, _ *coir.Nursery, c *coir.Chan[int]) {
			sel := coir.NewSelector()
			sel.Add(c.RecvCase(nil))
			_, _ = sel.Wait(ctx)
			sel.Close()
		}, coir.OpSelect},
		{"Sleep", func(ctx context.Context, _ *coir.Nursery, _ *coir.Chan[int]) { _ = coir.Sleep(ctx, time.Second) }, coir.OpSleep},
		{"Yield", func(ctx context.Context, _ *coir.Nursery, _ *coir.Chan[int]) { _ = coir.Yield(ctx) }, coir.OpYield},
		{"Go", func(_ context.Context, n *coir.Nursery, _ *coir.Chan[int]) {
			n.Go("x", func(context.Context) error { return nil })
		}, coir.OpGo},
		{"Run", func(ctx context.Context, _ *coir.Nursery, _ *coir.Chan[int]) {
			_ = coir.Run(ctx, func(context.Context, *coir.Nursery) error { return nil })
		}, coir.OpJoin},
		{"Wait", func(ctx context.Context, n *coir.Nursery, _ *coir.Chan[int]) {
			_ = n.Go("x", func(context.Context) error { return nil }).Wait(ctx)
		}, coir.OpWait},
		{"Nursery.Cancel", func(_ context.Context, n *coir.Nursery, _ *coir.Chan[int]) { n.Cancel(nil) }, coir.OpCancel},
		{"cancel of a scope", func(ctx context.Context, _ *coir.Nursery, _ *coir.Chan[int]) {
			_, cancel := coir.WithCancel(ctx)
			cancel(errGone)
		}, coir.OpCancel},
		{"cancel of a scope with a time", func(ctx context.Context, _ *coir.Nursery, _ *coir.Chan[int]) {
			_, cancel := coir.WithTimeout(ctx, time.Second)
			cancel()
		}, coir.OpCancel},
		{"Selector.Add", func(_ context.Context, _ *coir.Nursery, c *coir.Chan[int]) { coir.NewSelector().Add(c.RecvCase(nil)) }, coir.OpRegister},
		{"Selector.Remove", func(context.Context, *coir.Nursery, *coir.Chan[int]) { coir.NewSelector().Remove(0) }, coir.OpRegister},
		{"Sender.Clone", func(context.Context, *coir.Nursery, *coir.Chan[int]) { w, _ := coir.Pipe[int](1); w.Clone() }, coir.OpClone},
		{"Receiver.Clone", func(context.Context, *coir.Nursery, *coir.Chan[int]) { _, r := coir.Pipe[int](1); r.Clone() }, coir.OpClone},
		{"Sender.Close", func(context.Context, *coir.Nursery, *coir.Chan[int]) { w, r := coir.Pipe[int](1); w.Close(); _ = r }, coir.OpClose},
		{"Receiver.Close", func(context.Context, *coir.Nursery, *coir.Chan[int]) { w, r := coir.Pipe[int](1); r.Close(); _ = w }, coir.OpAbort},
		{"Sender.TrySend", func(context.Context, *coir.Nursery, *coir.Chan[int]) { w, _ := coir.Pipe[int](1); _ = w.TrySend(1) }, coir.OpTrySend},
		{"Pool.Recv", func(ctx context.Context, _ *coir.Nursery, _ *coir.Chan[int]) {
			p := coir.NewPool(1, func(context.Context) (int, error) { return 1, nil }, nil)
			_, _ = p.Recv(ctx)
		}, coir.OpRecv},
		{"Pool.Send", func(ctx context.Context, _ *coir.Nursery, _ *coir.Chan[int]) {
			p := coir.NewPool(1, func(context.Context) (int, error) { return 1, nil }, nil)
			v, _ := p.Recv(ctx)
			_ = p.Send(v)
		}, coir.OpTrySend},
		{"Pool.Close", func(context.Context, *coir.Nursery, *coir.Chan[int]) {
			coir.NewPool(1, func(context.Context) (int, error) { return 1, nil }, nil).Close()
		}, coir.OpAbort},
		{"Ordered.Close", func(context.Context, *coir.Nursery, *coir.Chan[int]) { coir.NewOrdered[int](1).Close() }, coir.OpClose},
	} {
		t.Run(c.name, func(t *testing.T) {
			var kinds []coir.OpKind
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
