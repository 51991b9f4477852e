package locks_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/locks"
)

func ExampleMutex() {
	accounts := locks.NewMutex(coir.WithName("accounts"))
	balance := 0
	err := coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		for range 10 {
			n.Go("deposit", func(ctx context.Context) error {
				if err := accounts.Lock(ctx); err != nil {
					return err // ctx ended first
				}
				defer accounts.Unlock()
				before := balance
				if err := coir.Sleep(ctx, time.Microsecond); err != nil { // the holder of a lock may wait
					return err
				}
				balance = before + 1
				return nil
			})
		}
		return nil
	})
	fmt.Println(balance, err)
	// Output: 10 <nil>
}

// A select locks a mutex or receives from a channel. If the mutex case happens, the select has locked it.
func ExampleMutex_LockCase() {
	err := coir.Run(context.Background(), func(ctx context.Context, _ *coir.Nursery) error {
		var report locks.Mutex
		quit := coir.NewEvent()
		for _, stop := range []bool{false, true} {
			if stop {
				quit.Set()
			}
			i, err := coir.SelectPriority(ctx, quit.DoneCase(), report.LockCase())
			if err != nil {
				return err
			}
			switch i {
			case 0:
				fmt.Println("told to stop")
			case 1:
				fmt.Println("locked")
				report.Unlock()
			}
		}
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// locked
	// told to stop
}

func ExampleRWMutex() {
	var table locks.RWMutex
	rows := map[string]int{}
	get := func(ctx context.Context, key string) (int, error) {
		if err := table.RLock(ctx); err != nil {
			return 0, err
		}
		defer table.RUnlock()
		return rows[key], nil
	}
	set := func(ctx context.Context, key string, value int) error {
		if err := table.Lock(ctx); err != nil {
			return err
		}
		defer table.Unlock()
		rows[key] = value
		return nil
	}
	ctx := context.Background()
	if err := set(ctx, "a", 1); err != nil {
		fmt.Println(err)
	}
	fmt.Println(get(ctx, "a"))
	// Output: 1 <nil>
}

// A semaphore limits how many uploads run at the same time, over all requests of a service.
func ExampleSemaphore() {
	uploads := locks.NewSemaphore(2, coir.WithName("uploads"))
	err := coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		for range 10 {
			n.Go("request", func(ctx context.Context) error {
				if err := uploads.Acquire(ctx, 1); err != nil {
					return err
				}
				defer uploads.Release(1)
				return coir.Sleep(ctx, time.Microsecond)
			})
		}
		return nil
	})
	fmt.Println(err, uploads)
	fmt.Println(uploads.Acquire(context.Background(), 3))
	// Output:
	// <nil> locks.Semaphore(uploads, 0 waiting, 0 of 2 taken)
	// locks: Acquire(3) of Semaphore uploads, which has 2 permits
}

// A connection is made when it is first needed. If that fails, the next caller tries again.
func ExampleOnce() {
	var connected locks.Once
	attempts := 0
	connect := func(context.Context) error {
		if attempts++; attempts == 1 {
			return errors.New("refused")
		}
		return nil
	}
	ctx := context.Background()
	for range 3 {
		fmt.Println(connected.Do(ctx, connect))
	}
	fmt.Println(attempts, "attempts")
	// Output:
	// refused
	// <nil>
	// <nil>
	// 2 attempts
}

// Workers compute in rounds: no worker starts a round before all have ended the previous one.
func ExampleBarrier() {
	const workers = 3
	step := locks.NewBarrier(workers, coir.WithName("step"))
	err := coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		for i := range workers {
			n.Go("worker", func(ctx context.Context) error {
				for range 2 {
					round, last, err := step.Wait(ctx)
					if err != nil {
						return err
					}
					if last {
						fmt.Println("round", round, "has ended")
					}
					if _, _, err := step.Wait(ctx); err != nil { // until the line has been printed
						return err
					}
				}
				return nil
			}, coir.WithIndex(i))
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// round 0 has ended
	// round 2 has ended
	// <nil>
}
