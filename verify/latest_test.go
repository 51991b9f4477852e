package verify

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/coir-go/coir"
	"github.com/coir-go/coir/pubsub"
)

// A Latest is a register: Set writes, and Get reads. Watch also reads, because its first value is the value at some
// moment of the call or later. The later values of a watcher are not operations of the register; package pubsub tests
// them.

type registerOp struct {
	write bool
	value int // the value to write
}

var register = porcupine.Model{
	Init: func() any { return 0 },
	Step: func(state, input, output any) (bool, any) {
		if op := input.(registerOp); op.write {
			return true, op.value
		}
		return output == state, state
	},
	DescribeOperation: func(input, output any) string {
		if op := input.(registerOp); op.write {
			return fmt.Sprintf("Set(%d)", op.value)
		}
		return fmt.Sprintf("Get() = %d", output)
	},
}

// TestLatestIsLinearizable checks histories of fibers and goroutines that set, get and watch against a register.
func TestLatestIsLinearizable(t *testing.T) {
	histories := 300
	if testing.Short() {
		histories = 30
	}
	for seed := range uint64(histories) {
		if ops := latestHistory(t, seed); !porcupine.CheckOperations(register, ops) {
			t.Fatalf("seed %d: not linearizable: %v", seed, ops)
		}
	}
}

// TestLatestJudge checks that the judge rejects a Get that returns an old value.
func TestLatestJudge(t *testing.T) {
	ops := []porcupine.Operation{
		{ClientId: 0, Input: registerOp{true, 1}, Call: 1, Return: 2},
		{ClientId: 1, Input: registerOp{}, Output: 0, Call: 3, Return: 4},
	}
	if porcupine.CheckOperations(register, ops) {
		t.Error("a Get that returns an old value passes")
	}
}

func latestHistory(t *testing.T, seed uint64) []porcupine.Operation {
	const clients, each = 5, 30
	l := pubsub.NewLatest(0)
	var clock atomic.Int64
	var mu sync.Mutex
	var ops []porcupine.Operation
	client := func(ctx context.Context, id int) {
		rng := rand.New(rand.NewPCG(seed, uint64(id)))
		var own []porcupine.Operation
		for i := range each {
			op := porcupine.Operation{ClientId: id, Call: clock.Add(1)}
			switch rng.IntN(5) {
			case 0, 1:
				v := 1 + id*each + i
				if err := l.Set(v); err != nil {
					t.Error(err)
				}
				op.Input = registerOp{true, v}
			case 2:
				w := l.Watch()
				v, err := w.Recv(ctx)
				if err != nil {
					t.Error(err)
				}
				w.Close()
				op.Input, op.Output = registerOp{}, v
			default:
				op.Input, op.Output = registerOp{}, l.Get()
			}
			op.Return = clock.Add(1)
			own = append(own, op)
			if rng.IntN(4) == 0 {
				_ = coir.Yield(ctx)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		ops = append(ops, own...)
	}
	rt := coir.NewRuntime(coir.WithWorkers(2 + int(seed%3)))
	defer func() { _ = rt.Close(context.Background()) }()
	var all sync.WaitGroup
	err := rt.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		for id := range clients {
			if id%2 == 0 {
				n.Go("client", func(ctx context.Context) error { client(ctx, id); return nil })
			} else {
				all.Go(func() { client(context.Background(), id) })
			}
		}
		return nil
	})
	all.Wait()
	if err != nil {
		t.Error(err)
	}
	return ops
}

// TestNoLeakAfterPubsub checks that subscribers that left or were closed, and publishers that were cancelled, leave
// nothing behind.
func TestNoLeakAfterPubsub(t *testing.T) {
	b, l := pubsub.NewBroadcast[int](), pubsub.NewLatest(0)
	_ = coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		b.Subscribe(0) // a subscriber that never receives
		for range 10 {
			sub, w := b.Subscribe(1), l.Watch()
			n.Go("subscriber", func(ctx context.Context) error {
				_, err := sub.Recv(ctx)
				return err
			})
			n.Go("watcher", func(ctx context.Context) error {
				for range w.All(ctx) {
				}
				return nil
			})
			n.Go("publisher", func(ctx context.Context) error { return b.Publish(ctx, 1) })
		}
		n.Go("canceller", func(ctx context.Context) error {
			if err := coir.Sleep(ctx, time.Millisecond); err != nil {
				return err
			}
			return errBroken
		})
		return nil
	})
	verifyNone(t)
}
