package coir

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestSmoke(t *testing.T) {
	err := Run(context.Background(), func(ctx context.Context, n *Nursery) error {
		for _, k := range []int{0, 1, 7, Unlimited} {
			c := NewChan[string](k, Name("c"))
			n.Go("s", func(ctx context.Context) error {
				for range 1000 {
					if err := c.Send(ctx, "x"); err != nil {
						return err
					}
				}
				c.Close()
				return nil
			})
			got := 0
			for range c.All(ctx) {
				got++
			}
			if got != 1000 {
				t.Error(k, got)
			}
			if _, err := c.Recv(ctx); !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
		}
		c := NewChan[int](0)
		if _, err := c.RecvTimeout(ctx, time.Millisecond); err != ErrTimeout {
			t.Error(err)
		}
		d := NewChan[string](0)
		f := n.Go("sel", func(ctx context.Context) error {
			for i := range 1000 {
				var err error
				if i%2 == 0 {
					_, err = Select(ctx, c.SendCase(i), d.SendCase("x"))
				} else {
					_, err = SelectPriority(ctx, c.SendCase(i), d.SendCase("x"))
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		var v int
		var s string
		var ferr error
		counts := [4]int{}
		for {
			i, err := Select(ctx, c.RecvCase(&v), d.RecvCase(&s), f.Done(&ferr), After(time.Second))
			if err != nil || i > 2 {
				t.Error(i, err)
			}
			counts[i]++
			if i == 2 {
				break
			}
		}
		t.Log(counts, ferr)
		sel := NewSelector()
		chans := make([]*Chan[int], 10)
		vals := make([]int, 10)
		for i := range chans {
			chans[i] = NewChan[int](i % 3)
			sel.Add(chans[i].RecvCase(&vals[i]))
			n.Go("s", func(ctx context.Context) error {
				for v := range 100 {
					if err := chans[i].Send(ctx, v); err != nil {
						return err
					}
				}
				chans[i].Close()
				return nil
			})
		}
		got := 0
		for sel.Len() > 0 {
			_, err := sel.Wait(ctx)
			if err == nil {
				got++
			} else if !errors.Is(err, ErrClosed) {
				return err
			}
		}
		if got != 1000 {
			t.Error(got)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestSmokeAllocs(t *testing.T) {
	_ = Run(context.Background(), func(ctx context.Context, n *Nursery) error {
		c, d := NewChan[int](0), NewChan[string](0)
		n.Go("s", func(ctx context.Context) error {
			for i := 0; ; i++ {
				if _, err := Select(ctx, c.SendCase(i), d.SendCase("x")); err != nil {
					return nil
				}
			}
		})
		var v int
		var s string
		t.Log(testing.AllocsPerRun(1000, func() {
			_, _ = Select(ctx, c.RecvCase(&v), d.RecvCase(&s), After(time.Second))
		}))
		t.Log(testing.AllocsPerRun(1000, func() {
			_, _ = c.RecvTimeout(ctx, time.Second)
			_, _ = d.Recv(ctx)
		}))
		n.Cancel(nil)
		return nil
	})
}
