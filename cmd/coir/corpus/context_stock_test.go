//go:build corpus

package corpus

import (
	"context"
	"sync"
	"testing"
)

// One goroutine owns the stock and answers requests. A caller whose context is cancelled goes away without taking the
// answer. If its request was accepted before that, the owner blocks on the answer, and the next caller waits for
// ever.
//
// Class: context
// Expect: deadlock

type stockRequest struct {
	item  string
	reply chan int
}

type stockDesk struct {
	requests chan stockRequest
	done     chan struct{}
}

func openStockDesk(stock map[string]int) *stockDesk {
	d := &stockDesk{requests: make(chan stockRequest), done: make(chan struct{})}
	go func() {
		defer close(d.done)
		for r := range d.requests {
			r.reply <- stock[r.item]
		}
	}()
	return d
}

func (d *stockDesk) ask(ctx context.Context, item string) (int, error) {
	return d.send(ctx, stockRequest{item: item, reply: make(chan int)})
}

func (d *stockDesk) askFixed(ctx context.Context, item string) (int, error) {
	return d.send(ctx, stockRequest{item: item, reply: make(chan int, 1)})
}

func (d *stockDesk) send(ctx context.Context, r stockRequest) (int, error) {
	select {
	case d.requests <- r:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	select {
	case n := <-r.reply:
		return n, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func (d *stockDesk) close() {
	close(d.requests)
	<-d.done
}

func runStockDesk(t *testing.T, ask func(*stockDesk, context.Context, string) (int, error)) {
	d := openStockDesk(map[string]int{"bolt": 12})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(cancel)
	if n, err := ask(d, ctx, "bolt"); err == nil && n != 12 {
		t.Errorf("%d bolts, want 12", n)
	}
	if n, err := ask(d, context.Background(), "bolt"); err != nil || n != 12 {
		t.Errorf("%d bolts, %v, want 12", n, err)
	}
	wg.Wait()
	d.close()
}

func TestBugStockDesk(t *testing.T) {
	runStockDesk(t, (*stockDesk).ask)
}

func TestFixedStockDesk(t *testing.T) {
	runStockDesk(t, (*stockDesk).askFixed)
}
