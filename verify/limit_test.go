package verify

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"pgregory.net/rapid"
)

// Nursery.Limit is checked against properties of every tree of fibers that start others under the same limit and wait
// for them:
//
//	PLACES  At any moment no more fibers than places are running, which means: not in a wait.
//	ENDS    The tree ends, however few places there are. The bounded pools of other libraries hang on such programs.
//	JOIN    Every fiber has run and ended when Run returns, even if one failed.

// A limitPlan says what one fiber does: it yields a few times, starts others, waits for them (or opens a nursery for
// them), and yields again.
type limitPlan struct {
	before, after int
	scope         bool // the others are in their own nursery
	fails         bool
	others        []*limitPlan
}

func (p *limitPlan) size() int {
	n := 1
	for _, o := range p.others {
		n += o.size()
	}
	return n
}

func (p *limitPlan) String() string {
	return fmt.Sprintf("{yields %d+%d, own nursery %v, fails %v, starts %v}", p.before, p.after, p.scope, p.fails, p.others)
}

func drawLimitPlan(t *rapid.T, depth int) *limitPlan {
	p := &limitPlan{
		before: rapid.IntRange(0, 2).Draw(t, "before"),
		after:  rapid.IntRange(0, 2).Draw(t, "after"),
		fails:  rapid.IntRange(0, 99).Draw(t, "fails") >= 98,
	}
	if depth > 0 {
		p.scope = rapid.IntRange(0, 3).Draw(t, "scope") == 3
		for range rapid.IntRange(0, 5).Draw(t, "others") {
			p.others = append(p.others, drawLimitPlan(t, depth-1))
		}
	}
	return p
}

// A house is a nursery with a limit, and the number of its fibers that are not in a wait.
type house struct {
	n      *coir.Nursery
	places int64
	inside atomic.Int64
	ran    *atomic.Int64
	over   *atomic.Int64 // the largest number by which places was exceeded
}

// enter counts the fibers inside. After the nursery has been cancelled the limit no longer holds, because an
// interrupted wait returns at once.
func (h *house) enter(ctx context.Context) {
	if d := h.inside.Add(1) - h.places; d > h.over.Load() && ctx.Err() == nil {
		h.over.Store(d)
	}
}

func (h *house) leave() { h.inside.Add(-1) }

func (h *house) perform(ctx context.Context, p *limitPlan) error {
	h.enter(ctx)
	h.ran.Add(1)
	yield(ctx, p.before)
	if p.scope {
		err := h.scope(ctx, p)
		if err != nil {
			h.leave()
			return err
		}
	} else {
		var fibers []*coir.Fiber
		for _, o := range p.others {
			fibers = append(fibers, h.n.Go("other", func(ctx context.Context) error { return h.perform(ctx, o) }))
		}
		for _, f := range fibers {
			h.leave()
			_ = f.Wait(ctx)
			h.enter(ctx)
		}
	}
	yield(ctx, p.after)
	h.leave()
	if p.fails {
		return errBroken
	}
	return nil
}

// scope opens a nursery with the same number of places, and starts the others in it.
func (h *house) scope(ctx context.Context, p *limitPlan) error {
	err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
		defer h.leave()
		inner := &house{n: n, places: h.places, ran: h.ran, over: h.over}
		n.Limit(int(h.places))
		for _, o := range p.others {
			n.Go("inner", func(ctx context.Context) error { return inner.perform(ctx, o) })
		}
		return nil
	})
	h.enter(ctx)
	return err
}

// yield continues when it is cancelled, because only the places matter here.
func yield(ctx context.Context, n int) {
	for range n {
		_ = coir.Yield(ctx)
	}
}

func TestLimitTrees(t *testing.T) {
	for _, workers := range []int{1, 2, 4} {
		t.Run(fmt.Sprintf("workers=%d", workers), func(t *testing.T) {
			rt := coir.NewRuntime(coir.WithWorkers(workers))
			defer closeSoon(t, rt)
			rapid.Check(t, func(t *rapid.T) {
				plan := drawLimitPlan(t, 4)
				places := rapid.IntRange(1, 4).Draw(t, "places")
				var ran, over atomic.Int64
				var err error
				endsSoon(t, plan, func() {
					err = rt.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
						n.Limit(places)
						h := &house{n: n, places: int64(places), ran: &ran, over: &over}
						n.Go("first", func(ctx context.Context) error { return h.perform(ctx, plan) })
						return nil
					})
				})
				if err != nil && !errors.Is(err, errBroken) {
					t.Errorf("Run returned %v\nthe plan was: %v", err, plan)
				}
				if got := ran.Load(); err == nil && got != int64(plan.size()) {
					t.Errorf("JOIN: %d of %d fibers ran\nthe plan was: %v", got, plan.size(), plan)
				}
				if d := over.Load(); d > 0 {
					t.Errorf("PLACES: %d more than the %d places were taken at once\nthe plan was: %v", d, places, plan)
				}
			})
		})
	}
}

// endsSoon runs fn, and reports it if it hangs. Then the fibers that it has started stay, because nothing can end them.
func endsSoon(t *rapid.T, plan fmt.Stringer, fn func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		fn()
	}()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Fatalf("ENDS: Run has not returned after 20 s; the plan was:\n%v", plan)
	}
}

// closeSoon closes rt. If a test has left it hanging, closeSoon gives up after a while.
func closeSoon(t *testing.T, rt *coir.Runtime) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := rt.Close(ctx); err != nil {
		t.Errorf("the runtime did not close: %v", err)
	}
}
