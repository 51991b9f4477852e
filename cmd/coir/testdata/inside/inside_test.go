package inside

import (
	"context"
	"sync"
	"testing"
	"time"
)

type counter struct {
	mu sync.Mutex
	n  int
}

func (c *counter) inc(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	c.mu.Lock()
	n := c.n
	c.mu.Unlock()
	select {
	case <-ctx.Done():
		return ctx.Err()
	default:
	}
	c.mu.Lock()
	c.n = n + 1
	c.mu.Unlock()
	return nil
}

func equal(t *testing.T, got, want int) {
	t.Helper()
	if got != want {
		t.Errorf("counted to %d, want %d\nat the end", got, want)
	}
}

// The context takes more steps than the counter.
func TestContext(t *testing.T) {
	c := &counter{}
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { _ = c.inc(t.Context()) })
	}
	wg.Wait()
	t.Log("the end")
	equal(t, c.n, 2)
}

// Which goroutine ends the context first can only be seen in its cause.
func TestCause(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	var wg sync.WaitGroup
	for _, err := range []error{context.Canceled, context.DeadlineExceeded} {
		wg.Add(1)
		go func() {
			defer wg.Done()
			cancel(err)
		}()
	}
	wg.Wait()
	if err := context.Cause(ctx); err != context.Canceled {
		t.Fatal(err)
	}
}

// The schedules diverge at the start of a goroutine, but what matters are the sends.
func TestFirst(t *testing.T) {
	c := make(chan int, 2)
	go func() { c <- 1 }()
	go func() { c <- 2 }()
	if got := <-c; got != 1 {
		t.Fatalf("the first is %d", got)
	}
}
