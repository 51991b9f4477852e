package coir_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coir-go/coir"
)

// buffer is a buffer of bytes. Get waits until there is a byte.
type buffer struct {
	cond coir.Cond
	data []byte
}

func (b *buffer) Put(c byte) {
	b.cond.Lock()
	defer b.cond.Unlock()
	b.data = append(b.data, c)
	b.cond.Signal()
}

func (b *buffer) Get(ctx context.Context) (byte, error) {
	b.cond.Lock()
	defer b.cond.Unlock()
	for len(b.data) == 0 {
		if err := b.cond.Wait(ctx); err != nil {
			return 0, err
		}
	}
	c := b.data[0]
	b.data = b.data[1:]
	return c, nil
}

func ExampleCond() {
	var b buffer
	err := coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		n.Go("writer", func(context.Context) error {
			for _, c := range []byte("abc") {
				b.Put(c)
			}
			return nil
		})
		for range 3 {
			c, err := b.Get(ctx)
			if err != nil {
				return err
			}
			fmt.Printf("%c\n", c)
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// a
	// b
	// c
	// <nil>
}

// tank holds litres that fibers can take. It is built with a Queue. Fill adds litres, up to its size.
type tank struct {
	queue  coir.Queue
	litres int
	size   int
}

func newTank(size int, opts ...coir.NameOption) *tank {
	t := &tank{size: size}
	t.queue.Init(opts...)
	return t
}

// Draw takes n litres. It waits until there are enough, and until earlier callers have been served.
func (t *tank) Draw(ctx context.Context, n int) error { return t.queue.Take(ctx, (*litres)(t), n) }

// DrawCase returns a case that takes n litres.
func (t *tank) DrawCase(n int) coir.Case { return t.queue.TakeCase((*litres)(t), n) }

// Fill adds n litres. It returns false if there is no room for them.
func (t *tank) Fill(n int) bool { return t.queue.Put((*litres)(t), n) }

// litres is a tank as a coir.Resource. The queue calls Take and Put one at a time, under a lock that the race detector
// does not see.
type litres tank

var draw = &coir.Verb{Name: "draw", Waits: "to draw from", Ends: "fill"}

//go:norace
func (l *litres) Take(n int) bool {
	if l.litres < n {
		return false
	}
	l.litres -= n
	return true
}

//go:norace
func (l *litres) Put(n int, _ bool) bool {
	if l.litres+n > l.size {
		return false
	}
	l.litres += n
	return true
}

func (l *litres) Verb(int) *coir.Verb { return draw }

func ExampleQueue() {
	t := newTank(10, coir.WithName("tank"))
	err := coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		drawn := n.Go("drawer", func(ctx context.Context) error { return t.Draw(ctx, 7) })
		fmt.Println(t.Fill(5), t.Fill(5))
		if err := drawn.Wait(ctx); err != nil {
			return err
		}
		_, err := coir.Select(ctx, t.DrawCase(3))
		return err
	})
	fmt.Println(t.litres, err)
	// Output:
	// true true
	// 0 <nil>
}

// request is a request that a table holds for a caller.
type request struct {
	watch  coir.Watch
	alarm  coir.Alarm
	answer coir.Promise[string]
}

// Ended is called when the caller has given up.
func (r *request) Ended(err error) { r.answer.Reject(err) }

// A Watch ends a request together with the context of its caller.
func ExampleWatch() {
	ctx, cancel := coir.WithCancel(context.Background())
	var r request
	r.answer.Init(coir.WithName("answer"))
	if err := r.watch.Start(ctx, &r); err != nil {
		fmt.Println(err)
	}
	cancel()
	_, err := r.answer.Wait(context.Background())
	fmt.Println(r.answer.Name(), err)
	// Output: answer context canceled
}

// An Alarm ends a request after a time limit.
func ExampleAlarm() {
	ctx := context.Background()
	var r request
	r.alarm.Start(ctx, &r, time.Millisecond)
	_, err := r.answer.Wait(ctx)
	fmt.Println(errors.Is(err, coir.ErrTimeout))
	// Output: true
}
