package main

import (
	"context"
	"runtime"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/locks"
)

// Locks, and what they are built on, are compared with package sync and x/sync.
//
// An operation is a lock and its unlock, an acquire and its release, or one wait that another fiber ends.

// oneFiber runs body in a fiber.
func oneFiber(body func(ctx context.Context, n int) error) func() side {
	return fibersDo(1, body)
}

// fibersDo runs body in k fibers, which share the n operations.
func fibersDo(k int, body func(ctx context.Context, n int) error) func() side {
	return func() side {
		return onRuntime(func(_ context.Context, nur *coir.Nursery, n int) error {
			for i := range k {
				turns := share(n, i, k)
				nur.Go("do", func(ctx context.Context) error { return body(ctx, turns) })
			}
			return nil
		})
	}
}

// goroutinesDo is the same with goroutines.
func goroutinesDo(k int, body func(n int)) func() side {
	return func() side {
		return side{loop: func(n int) {
			var wg sync.WaitGroup
			for i := range k {
				turns := share(n, i, k)
				wg.Go(func() { body(turns) })
			}
			wg.Wait()
		}}
	}
}

var (
	ourMutex   locks.Mutex
	theirMutex sync.Mutex
	ourRW      locks.RWMutex
	theirRW    sync.RWMutex
	guarded    [1]int // what the locks guard
)

func lockOurs(ctx context.Context, n int) error {
	for range n {
		if err := ourMutex.Lock(ctx); err != nil {
			return err
		}
		guarded[0]++
		ourMutex.Unlock()
	}
	return nil
}

func lockTheirs(n int) {
	for range n {
		theirMutex.Lock()
		guarded[0]++
		theirMutex.Unlock()
	}
}

// Holders yield, like fibers that wait for something else.
func lockAndYieldOurs(ctx context.Context, n int) error {
	for range n {
		if err := ourMutex.Lock(ctx); err != nil {
			return err
		}
		guarded[0]++
		err := coir.Yield(ctx)
		ourMutex.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

func lockAndYieldTheirs(n int) {
	for range n {
		theirMutex.Lock()
		guarded[0]++
		runtime.Gosched()
		theirMutex.Unlock()
	}
}

func readOurs(ctx context.Context, n int) error {
	for range n {
		if err := ourRW.RLock(ctx); err != nil {
			return err
		}
		ourRW.RUnlock()
	}
	return nil
}

func readTheirs(n int) {
	for range n {
		theirRW.RLock()
		theirRW.RUnlock() //nolint:staticcheck // the pair is what is measured
	}
}

var (
	ourPermits   = locks.NewSemaphore(4)
	theirPermits = semaphore.NewWeighted(4)
)

func acquireOurs(ctx context.Context, n int) error {
	for range n {
		if err := ourPermits.Acquire(ctx, 1); err != nil {
			return err
		}
		ourPermits.Release(1)
	}
	return nil
}

func acquireTheirs(n int) {
	ctx := context.Background()
	for range n {
		if err := theirPermits.Acquire(ctx, 1); err != nil {
			panic(err)
		}
		theirPermits.Release(1)
	}
}

// A holder of a permit yields, so that some fibers always wait.
func acquireAndYieldOurs(ctx context.Context, n int) error {
	for range n {
		if err := ourPermits.Acquire(ctx, 1); err != nil {
			return err
		}
		err := coir.Yield(ctx)
		ourPermits.Release(1)
		if err != nil {
			return err
		}
	}
	return nil
}

func acquireAndYieldTheirs(n int) {
	ctx := context.Background()
	for range n {
		if err := theirPermits.Acquire(ctx, 1); err != nil {
			panic(err)
		}
		runtime.Gosched()
		theirPermits.Release(1)
	}
}

// Two fibers set events for each other. The events of a round are made before the round, many at a time.
func eventOurs() side {
	return onRuntime(func(_ context.Context, nur *coir.Nursery, n int) error {
		n = (n + 1) / 2
		there, back := make([]coir.Event, n), make([]coir.Event, n)
		nur.Go("there", func(ctx context.Context) error {
			for i := range n {
				there[i].Set()
				if err := back[i].Wait(ctx); err != nil {
					return err
				}
			}
			return nil
		})
		nur.Go("back", func(ctx context.Context) error {
			for i := range n {
				if err := there[i].Wait(ctx); err != nil {
					return err
				}
				back[i].Set()
			}
			return nil
		})
		return nil
	})
}

func eventTheirs() side {
	return side{loop: func(n int) {
		n = (n + 1) / 2
		there, back := make([]chan struct{}, n), make([]chan struct{}, n)
		for i := range n {
			there[i], back[i] = make(chan struct{}), make(chan struct{})
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := range n {
				close(there[i])
				<-back[i]
			}
		})
		wg.Go(func() {
			for i := range n {
				<-there[i]
				close(back[i])
			}
		})
		wg.Wait()
	}}
}

// Two fibers take turns with a Cond.
func condOurs() side {
	return onRuntime(func(_ context.Context, nur *coir.Nursery, n int) error {
		var c coir.Cond
		turn := 0
		for me := range 2 {
			turns := share(n, me, 2)
			nur.Go("turn", func(ctx context.Context) error {
				for range turns {
					c.Lock()
					for turn%2 != me {
						if err := c.Wait(ctx); err != nil {
							c.Unlock()
							return err
						}
					}
					turn++
					c.Signal()
					c.Unlock()
				}
				return nil
			})
		}
		return nil
	})
}

func condTheirs() side {
	return side{loop: func(n int) {
		var mu sync.Mutex
		c := sync.NewCond(&mu)
		turn := 0
		var wg sync.WaitGroup
		for me := range 2 {
			turns := share(n, me, 2)
			wg.Go(func() {
				for range turns {
					mu.Lock()
					for turn%2 != me {
						c.Wait()
					}
					turn++
					c.Signal()
					mu.Unlock()
				}
			})
		}
		wg.Wait()
	}}
}
