package buf_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/buf"
)

// A buffer that was returned is lent again, empty.
//
// Spec: BU-09 (a pool makes, resets and lends buffers)
func TestPoolLendsAgain(t *testing.T) {
	each(t, func(t *testing.T, opt buf.Option) {
		p := newPool(t, 100, 2, opt)
		for range 10 {
			a, b := with(t, p, "a"), with(t, p, "b")
			if _, err := p.TryGet(); !errors.Is(err, coir.ErrWouldBlock) {
				t.Fatalf("%v", err)
			}
			if _, err := p.GetTimeout(t.Context(), 1); !errors.Is(err, coir.ErrTimeout) {
				t.Fatalf("%v", err)
			}
			if p.Len() != 0 || p.Cap() != 2 || p.Size() != 100 || p.Stats().Lent != 2 {
				t.Fatalf("%v, %+v", p, p.Stats())
			}
			b.Release()
			c, err := p.Get(t.Context())
			if err != nil || c.Len() != 0 || c.Cap() != 100 {
				t.Fatalf("%v, %v", c, err)
			}
			a.Release()
			c.Release()
			if p.Len() != 2 {
				t.Fatalf("the pool is %v, want Len 2", p)
			}
		}
	})
}

// If the context has ended, Get returns no buffer even if some are free.
func TestGetWithAnEndedContext(t *testing.T) {
	each(t, func(t *testing.T, opt buf.Option) {
		p := newPool(t, 100, 1, opt)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := p.Get(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		err := coir.Run(t.Context(), func(ctx context.Context, _ *coir.Nursery) error {
			in, cancel := coir.WithCancel(ctx)
			cancel()
			_, err := p.GetTimeout(in, 1)
			return err
		})
		if !errors.Is(err, context.Canceled) || p.Len() != 1 {
			t.Errorf("%v, %v", err, p)
		}
	})
}

// Waiting goroutines get the released buffers in the order of arrival, and a later TryGet does not overtake them. When
// no goroutine waits any more, the pool uses its stack again.
//
// Spec: BU-09 (a pool makes, resets and lends buffers)
func TestReleasedBuffersGoToTheWaiters(t *testing.T) {
	each(t, func(t *testing.T, opt buf.Option) {
		p := newPool(t, 64, 2, opt)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		for range 3 {
			first, second := get(t, p), get(t, p)
			var got [2]buf.Buf
			var wg sync.WaitGroup
			for i := range got {
				wg.Go(func() {
					var err error
					if got[i], err = p.Get(ctx); err != nil {
						t.Error(err)
					}
				})
				for p.Stats().Waiting <= i && ctx.Err() == nil {
					runtime.Gosched()
				}
			}
			first.Release()
			if _, err := p.TryGet(); !errors.Is(err, coir.ErrWouldBlock) {
				t.Errorf("it has overtaken those that wait: %v", err)
			}
			second.Release()
			wg.Wait()
			if t.Failed() {
				return
			}
			got[0].Release()
			got[1].Release()
			if p.Len() != 2 {
				t.Errorf("the pool is %v, want Len 2", p)
			}
		}
	})
}

// Fibers and goroutines get buffers from a pool that has too few, in every possible way: each gets one, none is held
// twice, and all are returned.
func TestPoolUnderPressure(t *testing.T) {
	for _, selects := range []bool{false, true} {
		const size, count = 64, 3
		turns := 3000
		if testing.Short() || checkedBuild {
			turns = 300
		}
		p := newPool(t, size, count)
		var held atomic.Int32
		use := func(b buf.Buf) {
			if held.Add(1) > count {
				t.Errorf("%d of %d are held", held.Load(), count)
			}
			stamp(b, uint64(held.Load()))
			runtime.Gosched()
			held.Add(-1)
			b.Release()
		}
		work := func(ctx context.Context, n int) error {
			for i := range turns {
				var b buf.Buf
				var err error
				switch (n + i) % 5 {
				case 0:
					b, err = p.GetTimeout(ctx, 1000)
				case 1:
					b, err = p.TryGet()
				case 2:
					if selects {
						_, err = coir.Select(ctx, p.GetCase(&b))
						break
					}
					fallthrough
				default:
					b, err = p.Get(ctx)
				}
				if errors.Is(err, coir.ErrTimeout) || errors.Is(err, coir.ErrWouldBlock) {
					continue
				}
				if err != nil {
					return err
				}
				use(b)
			}
			return nil
		}
		var wg sync.WaitGroup
		for n := range 3 {
			wg.Go(func() {
				if err := work(context.Background(), n); err != nil {
					t.Error(err)
				}
			})
		}
		err := coir.Run(t.Context(), func(_ context.Context, nur *coir.Nursery) error {
			for n := range 5 {
				nur.Go("worker", func(ctx context.Context) error { return work(ctx, n) }, coir.WithIndex(n))
			}
			return nil
		})
		wg.Wait()
		if err != nil || p.Len() != count {
			t.Errorf("%v, %v", err, p)
		}
	}
}

// Several owners of shared buffers release them at the same time: each buffer returns once.
//
// Spec: BU-06 (a region is released once)
func TestSharesAreReleasedAtTheSameTime(t *testing.T) {
	each(t, func(t *testing.T, opt buf.Option) {
		p := newPool(t, 64, 2, opt)
		turns := 5000
		if testing.Short() || checkedBuild {
			turns = 500
		}
		var all [2]buf.Buf
		var round, released atomic.Int64 // the goroutines start each round together, and end when it is -1
		var wg sync.WaitGroup
		defer wg.Wait()
		defer round.Store(-1)
		for i := range all {
			wg.Go(func() {
				for last := int64(0); ; {
					if now := round.Load(); now > last {
						all[i].Release()
						released.Add(1)
						last = now
					} else if now < 0 {
						return
					}
					runtime.Gosched()
				}
			})
		}
		for i := range int64(turns) {
			all[0] = get(t, p)
			all[1] = all[0].Share()
			round.Store(i + 1)
			for released.Load() < 2*(i+1) {
				runtime.Gosched()
			}
			if p.Len() != 2 {
				t.Fatalf("the pool is %v, want Len 2", p)
			}
		}
	})
}
