package coir_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/coir-go/coir"
)

// Values pass from goroutines through a channel of Go to fibers, and back, complete and in order, in a bubble and
// outside.
func TestNativeChannelsThereAndBack(t *testing.T) {
	work := func(t *testing.T) {
		const values = 300
		for _, capacity := range []int{0, 3, coir.Unbounded} {
			in := make(chan int, min(capacity, 3))
			var got []int
			var all sync.WaitGroup
			all.Go(func() {
				defer close(in)
				for i := range values {
					in <- i
				}
			})
			err := coir.Run(t.Context(), func(_ context.Context, n *coir.Nursery) error {
				out := coir.ToChan(n, coir.FromChan(n, in, capacity))
				all.Go(func() {
					for v := range out {
						got = append(got, v)
					}
				})
				return nil
			})
			all.Wait()
			want := make([]int, values)
			for i := range want {
				want[i] = i
			}
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("capacity %d: got %d values, %v", capacity, len(got), err)
			}
		}
	}
	t.Run("outside", work)
	t.Run("bubble", func(t *testing.T) { synctest.Test(t, work) })
}

var errStopped = errors.New("stopped")

// If the nursery is cancelled, each value that was received from the native channel is delivered or goes to
// OnUndelivered, and receivers get the cause.
func TestFromChanThatIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, capacity := range []int{0, 2, 8} {
			in := make(chan int, 5)
			for i := range 5 {
				in <- i
			}
			var lost []int
			var c *coir.Chan[int]
			err := coir.Run(t.Context(), func(_ context.Context, n *coir.Nursery) error {
				c = coir.FromChan(n, in, capacity, coir.OnUndelivered(func(v int) { lost = append(lost, v) }))
				go func() {
					synctest.Wait()
					n.Cancel(errStopped)
				}()
				return nil
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("Run: %v", err)
			}
			slices.Sort(lost)
			taken := min(capacity+1, 5)
			if !slices.Equal(lost, []int{0, 1, 2, 3, 4}[:taken]) || len(in) != 5-taken {
				t.Errorf("capacity %d: lost %v, left %d", capacity, lost, len(in))
			}
			if _, err := c.Recv(t.Context()); !errors.Is(err, coir.ErrClosed) || !errors.Is(err, errStopped) {
				t.Errorf("Recv: %v", err)
			}
		}
	})
}

// If the receiver of a FromChan leaves, its child ends, and the value that it holds goes to OnUndelivered.
func TestFromChanWithoutReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := make(chan int, 1)
		in <- 1
		var lost []int
		err := coir.Run(t.Context(), func(_ context.Context, n *coir.Nursery) error {
			c := coir.FromChan(n, in, 0, coir.OnUndelivered(func(v int) { lost = append(lost, v) }))
			go func() {
				synctest.Wait()
				c.Abort(errStopped)
			}()
			return nil
		})
		if err != nil || !slices.Equal(lost, []int{1}) {
			t.Errorf("lost %v, %v", lost, err)
		}
	})
}

// A FromChan with OverflowFail hands over what finds no room, and goes on.
func TestFromChanThatOverflows(t *testing.T) {
	in := make(chan int, 5)
	for i := range 5 {
		in <- i
	}
	close(in)
	var lost []int
	var c *coir.Chan[int]
	err := coir.Run(t.Context(), func(_ context.Context, n *coir.Nursery) error {
		c = coir.FromChan(n, in, 2, coir.WithOverflow(coir.OverflowFail), coir.OnUndelivered(func(v int) { lost = append(lost, v) }))
		return nil
	})
	var got []int
	for v := range c.All(t.Context()) {
		got = append(got, v)
	}
	if err != nil || !slices.Equal(got, []int{0, 1}) || !slices.Equal(lost, []int{2, 3, 4}) {
		t.Errorf("got %v, lost %v, %v", got, lost, err)
	}
}

// A ToChan that is cancelled closes its channel. The value that it held goes to OnUndelivered; the others are still in
// the channel. One whose channel is aborted closes too.
func TestToChanThatIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lost []int
		c := coir.NewChan[int](4, coir.OnUndelivered(func(v int) { lost = append(lost, v) }))
		for i := range 3 {
			_ = c.Send(t.Context(), i)
		}
		var out <-chan int
		err := coir.Run(t.Context(), func(_ context.Context, n *coir.Nursery) error {
			out = coir.ToChan(n, c)
			go func() {
				<-out
				synctest.Wait()
				n.Cancel(errStopped)
			}()
			return nil
		})
		if _, ok := <-out; ok || !errors.Is(err, context.Canceled) {
			t.Errorf("open: %v; Run: %v", ok, err)
		}
		if !slices.Equal(lost, []int{1}) || c.Len() != 1 {
			t.Errorf("lost %v, left %d", lost, c.Len())
		}
		c.Abort(errStopped)
		err = coir.Run(t.Context(), func(_ context.Context, n *coir.Nursery) error {
			out = coir.ToChan(n, c)
			return nil
		})
		if _, ok := <-out; ok || err != nil {
			t.Errorf("open: %v; Run: %v", ok, err)
		}
	})
}

// A part of a program that still uses a channel of Go feeds fibers.
func ExampleFromChan() {
	lines := make(chan string)
	go func() { // old code
		defer close(lines)
		for _, l := range []string{"a", "b"} {
			lines <- l
		}
	}()
	_ = coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		c := coir.FromChan(n, lines, 16, coir.WithName("lines"))
		n.Go("print", func(ctx context.Context) error {
			for l, err := range c.All(ctx) {
				if err != nil {
					return err
				}
				fmt.Println(l)
			}
			return nil
		})
		return nil
	})
	// Output:
	// a
	// b
}

// Fibers feed a part of a program that still uses a channel of Go.
func ExampleToChan() {
	squares := coir.NewChan[int](4)
	done := make(chan int)
	_ = coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		out := coir.ToChan(n, squares)
		go func() { // old code
			sum := 0
			for v := range out {
				sum += v
			}
			done <- sum
		}()
		n.Go("squares", func(ctx context.Context) error {
			defer squares.Close()
			for i := range 4 {
				if err := squares.Send(ctx, i*i); err != nil {
					return err
				}
			}
			return nil
		})
		return nil
	})
	fmt.Println(<-done)
	// Output: 14
}
