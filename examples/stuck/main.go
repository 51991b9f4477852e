// Command stuck is a program that gets stuck in one of several ways:
//
//	go run ./examples/stuck -bug locks
//
// It serves a page about its state on http://localhost:7117 (package inspect). See README.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/desk"
	"github.com/coir-go/coir/inspect"
	"github.com/coir-go/coir/locks"
)

func main() {
	names := slices.Sorted(maps.Keys(bugs))
	bug := flag.String("bug", "locks", "what is wrong: "+strings.Join(names, ", "))
	addr := flag.String("addr", "localhost:7117", "where to show it")
	flag.Parse()
	run, ok := bugs[*bug]
	if !ok {
		fmt.Fprintf(os.Stderr, "stuck: unknown bug %q; known bugs: %s\n", *bug, strings.Join(names, ", "))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	go func() {
		if err := inspect.Serve(ctx, *addr); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	fmt.Printf("see http://%s, or: curl %s/text\n", *addr, *addr)
	if err := coir.Run(ctx, run); err != nil {
		fmt.Println(err)
	}
}

// bugs are the bodies of a Run, one for each bug.
var bugs = map[string]func(ctx context.Context, n *coir.Nursery) error{
	"locks":    twoLocks,
	"pool":     lockAndPool,
	"pipeline": pipeline,
	"gone":     receiverGone,
	"full":     slowReceiver,
	"handlers": fullForHandlers,
	"native":   nativeCalls,
	"hog":      neverYields,
	"cancel":   ignoredCancel,
	"ticket":   lostAnswer,
	"all":      allWait,
}

// twoLocks has fibers that take two locks in opposite orders.
func twoLocks(ctx context.Context, n *coir.Nursery) error {
	alice, bob := locks.NewMutex(coir.WithName("alice")), locks.NewMutex(coir.WithName("bob"))
	met := locks.NewBarrier(3)
	transfer := func(from, to *locks.Mutex) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			if err := from.Lock(ctx); err != nil {
				return err
			}
			defer from.Unlock()
			if _, _, err := met.Wait(ctx); err != nil {
				return err
			}
			if err := to.Lock(ctx); err != nil {
				return err
			}
			to.Unlock()
			return nil
		}
	}
	n.Go("transfer", transfer(alice, bob), coir.WithIndex(0))
	n.Go("transfer", transfer(bob, alice), coir.WithIndex(1))
	n.Go("audit", func(ctx context.Context) error {
		if _, _, err := met.Wait(ctx); err != nil {
			return err
		}
		return alice.Lock(ctx)
	})
	idle(n)
	return nil
}

// lockAndPool has a fiber that holds a lock and waits for a connection, while the fibers that have all connections wait
// for the lock.
func lockAndPool(_ context.Context, n *coir.Nursery) error {
	type connection struct{}
	dial := func(context.Context) (*connection, error) { return new(connection), nil }
	connections := coir.NewPool(2, dial, nil, coir.WithName("connections"))
	cache := locks.NewMutex(coir.WithName("cache"))
	met := locks.NewBarrier(3)
	for i := range 2 {
		n.Go("query", func(ctx context.Context) error {
			c, err := connections.Get(ctx)
			if err != nil {
				return err
			}
			defer connections.Put(c) //nolint:errcheck // it was lent
			if _, _, err := met.Wait(ctx); err != nil {
				return err
			}
			if err := cache.Lock(ctx); err != nil {
				return err
			}
			cache.Unlock()
			return nil
		}, coir.WithIndex(i))
	}
	n.Go("refresh", func(ctx context.Context) error {
		if err := cache.Lock(ctx); err != nil {
			return err
		}
		defer cache.Unlock()
		if _, _, err := met.Wait(ctx); err != nil {
			return err
		}
		c, err := connections.Get(ctx)
		if err != nil {
			return err
		}
		return connections.Put(c)
	})
	idle(n)
	return nil
}

// pipeline has two stages that send to each other when both channels are full.
func pipeline(ctx context.Context, n *coir.Nursery) error {
	parsed := coir.NewChan[int](4, coir.WithName("parsed"))
	again := coir.NewChan[int](0, coir.WithName("again"))
	n.Go("parse", func(ctx context.Context) error {
		if _, err := again.Recv(ctx); err != nil {
			return err
		}
		for i := 0; ; i++ {
			if err := parsed.Send(ctx, i); err != nil {
				return err
			}
		}
	})
	n.Go("retry", func(ctx context.Context) error {
		for i := 0; ; i++ {
			if err := again.Send(ctx, i); err != nil {
				return err
			}
			if _, err := parsed.Recv(ctx); err != nil {
				return err
			}
		}
	})
	idle(n)
	return nil
}

// receiverGone has a consumer that returns at the first bad value. It returns nil, so nothing is cancelled.
func receiverGone(ctx context.Context, n *coir.Nursery) error {
	orders := coir.NewChan[int](8, coir.WithName("orders"))
	n.Go("producer", func(ctx context.Context) error {
		for i := 1; ; i++ {
			if err := orders.Send(ctx, i); err != nil {
				return err
			}
		}
	})
	n.Go("consumer", func(ctx context.Context) error {
		for order, err := range orders.All(ctx) {
			if err != nil || order%100 == 0 {
				return nil
			}
		}
		return nil
	})
	idle(n)
	return nil
}

// slowReceiver has a consumer that waits for something else.
func slowReceiver(ctx context.Context, n *coir.Nursery) error {
	lines := coir.NewChan[string](64, coir.WithName("lines"))
	flushed := coir.NewEvent(coir.WithName("flushed"))
	n.Go("read", func(ctx context.Context) error {
		for {
			if err := lines.Send(ctx, "a line"); err != nil {
				return err
			}
		}
	})
	n.Go("write", func(ctx context.Context) error {
		if _, err := lines.Recv(ctx); err != nil {
			return err
		}
		return flushed.Wait(ctx)
	})
	idle(n)
	return nil
}

// fullForHandlers has a web server. Its handlers, which are goroutines, send to a channel whose consumer waits for
// something else. The label gives the handlers a name.
func fullForHandlers(ctx context.Context, n *coir.Nursery) error {
	orders := coir.NewChan[string](2, coir.WithName("orders"))
	stored := coir.NewEvent(coir.WithName("stored"))
	n.Go("store", func(ctx context.Context) error {
		if _, err := orders.Recv(ctx); err != nil {
			return err
		}
		return stored.Wait(ctx)
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pprof.Do(r.Context(), pprof.Labels("handler", r.URL.Path), func(ctx context.Context) {
			if err := orders.Send(ctx, "an order"); err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
			}
		})
	}))
	n.Go("clients", func(ctx context.Context) error {
		defer server.Close() // it waits for the handlers
		var requests sync.WaitGroup
		for range 5 {
			requests.Go(func() {
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/order", nil)
				if err != nil {
					return
				}
				if answer, err := server.Client().Do(r); err == nil {
					_ = answer.Body.Close()
				}
			})
		}
		requests.Wait()
		return ctx.Err()
	}, coir.WithGoroutine())
	idle(n)
	return nil
}

// nativeCalls has fibers that block their workers on a native channel.
func nativeCalls(ctx context.Context, n *coir.Nursery) error {
	never := make(chan int)
	for i := range 3 {
		n.Go("query", func(ctx context.Context) error {
			select { // the fiber holds its worker, because coir does not see this wait
			case <-never:
			case <-ctx.Done():
			}
			return ctx.Err()
		}, coir.WithIndex(i))
	}
	idle(n)
	return nil
}

// neverYields has a fiber that computes and never calls coir.
func neverYields(ctx context.Context, n *coir.Nursery) error {
	var stop atomic.Bool
	context.AfterFunc(ctx, func() { stop.Store(true) })
	n.Go("compress", func(context.Context) error {
		for !stop.Load() {
		}
		return nil
	})
	idle(n)
	return nil
}

// ignoredCancel has a fiber that waits for something that a cancellation does not end.
func ignoredCancel(ctx context.Context, n *coir.Nursery) error {
	drained := coir.NewEvent(coir.WithName("drained"))
	context.AfterFunc(ctx, func() { drained.Set() })
	n.Go("serve", func(ctx context.Context) error {
		return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			n.Go("flush", func(ctx context.Context) error { return drained.Wait(coir.Shield(ctx)) })
			n.Cancel(fmt.Errorf("the disk is full"))
			return nil
		})
	})
	idle(n)
	return nil
}

// lostAnswer waits for the answer to a payment that never comes. Its ticket is reported when it is a minute old.
func lostAnswer(_ context.Context, n *coir.Nursery) error {
	payments := desk.New[string](desk.WithName("payments"))
	n.Go("order", func(ctx context.Context) error {
		ticket, err := payments.Open(ctx, coir.WithName("payment of order 7"))
		if err != nil {
			return err
		}
		_, err = ticket.Wait(ctx)
		return err
	})
	idle(n)
	return nil
}

// allWait has a consumer that waits for values, and a producer that forgets to close the channel.
func allWait(ctx context.Context, n *coir.Nursery) error {
	jobs := coir.NewChan[int](0, coir.WithName("jobs"))
	for i := range 3 {
		n.Go("worker", func(ctx context.Context) error {
			for _, err := range jobs.All(ctx) {
				if err != nil {
					return err
				}
			}
			return nil
		}, coir.WithIndex(i))
	}
	for i := range 100 {
		if err := jobs.Send(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// idle is a healthy part of the program: it does something every second.
func idle(n *coir.Nursery) {
	n.Go("heartbeat", func(ctx context.Context) error {
		for {
			if err := coir.Sleep(ctx, time.Second); err != nil {
				return err
			}
		}
	})
}
