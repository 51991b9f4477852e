package sim

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/coir-go/coir"
)

// Sends and a receive that began without a wait are cancelled while they meet: each ends in one way, no value is lost
// or received twice, and a value whose send has failed was not received.
func TestOwnAsyncEndsInOneWay(t *testing.T) {
	for _, capacity := range []int{0, 1} {
		own(t, func(ctx context.Context, s *Sim) {
			c := coir.NewChan[int](capacity)
			var sent, failed, got, ended atomic.Int32
			_ = coir.Run(ctx, func(ctx context.Context, all *coir.Nursery) error {
				begin := func(name string, do func(n *coir.Nursery)) {
					all.Go(name, func(ctx context.Context) error {
						return coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
							n.Go("cancel", func(context.Context) error {
								n.Cancel(nil)
								return nil
							})
							do(n)
							return nil
						})
					})
				}
				begin("send", func(n *coir.Nursery) {
					for i := range 2 {
						p := c.SendAsync(n, i+1)
						if p.Reject(context.Canceled) {
							s.Errorf("send %d was rejected from outside", i+1)
						}
						p.OnDone(func(_ struct{}, err error) {
							ended.Add(1)
							if err == nil {
								sent.Add(int32(i) + 1)
							} else {
								failed.Add(int32(i) + 1)
							}
						})
					}
				})
				begin("receive", func(n *coir.Nursery) {
					c.RecvAsync(n).OnDone(func(v int, _ error) {
						ended.Add(1)
						got.Add(int32(v))
					})
				})
				return nil
			})
			for v, err := c.TryRecv(); err == nil; v, err = c.TryRecv() {
				got.Add(int32(v))
			}
			if sent.Load() != got.Load() || sent.Load()+failed.Load() != 3 || ended.Load() != 3 {
				s.Errorf("sent %d, failed %d, received %d, %d ended", sent.Load(), failed.Load(), got.Load(), ended.Load())
			}
			if st := c.Stats(); st.Send.Waiting+st.Recv.Waiting != 0 {
				s.Errorf("%d waiters are left", st.Send.Waiting+st.Recv.Waiting)
			}
			s.Sometimes(failed.Load() == 2-2*int32(capacity), "as many sends succeed as can")
			s.Sometimes(failed.Load() == 3, "both sends fail")
		})
	}
}

// A program that waits for an operation that nothing ends is a deadlock, and the report says which.
func TestReportOfAnAsyncOperation(t *testing.T) {
	f := found(t, KindDeadlock, func(ctx context.Context, _ *Sim) {
		c := coir.NewChan[int](0, coir.WithName("jobs"))
		_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			_, err := c.RecvAsync(n).Wait(ctx)
			return err
		})
	})
	says(t, f, "Chan.RecvAsync waits to receive from jobs (step 2, at 0s")
}
