package sim

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/locks"
)

// The mistakes of the corpus that concern locks and a Cond.

// lockOrder: two transfers lock two accounts, each its own first. Fixed, both lock them in the same order.
func lockOrder(fixed bool) program {
	return func(ctx context.Context, _ *Sim) {
		accounts, journal := locks.NewMutex(coir.WithName("accounts")), locks.NewMutex(coir.WithName("journal"))
		both := func(first, second *locks.Mutex) func(context.Context) error {
			return func(ctx context.Context) error {
				if err := first.Lock(ctx); err != nil {
					return err
				}
				defer first.Unlock()
				if err := second.Lock(ctx); err != nil {
					return err
				}
				second.Unlock()
				return nil
			}
		}
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			n.Go("debit", both(accounts, journal))
			if fixed {
				n.Go("credit", both(accounts, journal))
			} else {
				n.Go("credit", both(journal, accounts))
			}
		})
	}
}

// forgottenUnlock: a withdrawal that finds too little returns without Unlock. The order of the withdrawals decides
// which one that is, and whether another one follows. Fixed, Unlock is deferred.
func forgottenUnlock(fixed bool) program {
	return func(ctx context.Context, _ *Sim) {
		account, balance := locks.NewMutex(coir.WithName("account")), 3
		withdraw := func(ctx context.Context, n int) error {
			if err := account.Lock(ctx); err != nil {
				return err
			}
			if fixed {
				defer account.Unlock()
			}
			if balance < n {
				return nil // refused
			}
			balance -= n
			if !fixed {
				account.Unlock()
			}
			return nil
		}
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			for _, amount := range []int{1, 2, 2} {
				n.Go("withdraw", func(ctx context.Context) error { return withdraw(ctx, amount) })
			}
		})
	}
}

// permitLostInCancel: a download that is cancelled while it has a permit does not give it back. Fixed, it does.
func permitLostInCancel(fixed bool) program {
	return func(ctx context.Context, _ *Sim) {
		slots := locks.NewSemaphore(1, coir.WithName("slots"))
		download := func(ctx context.Context) error {
			if err := slots.Acquire(ctx, 1); err != nil {
				return err
			}
			if err := coir.Sleep(ctx, time.Second); err != nil {
				if fixed {
					slots.Release(1)
				}
				return err
			}
			slots.Release(1)
			return nil
		}
		nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
			n.Go("impatient", func(ctx context.Context) error {
				in, cancel := coir.WithCancel(ctx)
				n.Go("user", func(context.Context) error {
					cancel()
					return nil
				})
				_ = download(in)
				return nil
			})
			n.Go("patient", download)
		})
	}
}

// readLockedTwice: a reader calls a function that locks for reading again. If a writer arrives in between, it waits for
// the reader, and the reader for it. Fixed, the function expects that its caller holds the lock.
func readLockedTwice(fixed bool) program {
	return func(ctx context.Context, _ *Sim) {
		table, rows := locks.NewRWMutex(coir.WithName("table")), 0
		count := func(ctx context.Context) (int, error) {
			if !fixed {
				if err := table.RLock(ctx); err != nil {
					return 0, err
				}
				defer table.RUnlock()
			}
			return rows, nil
		}
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			n.Go("reader", func(ctx context.Context) error {
				if err := table.RLock(ctx); err != nil {
					return err
				}
				defer table.RUnlock()
				_, err := count(ctx)
				return err
			})
			n.Go("writer", func(ctx context.Context) error {
				if err := table.Lock(ctx); err != nil {
					return err
				}
				rows++
				table.Unlock()
				return nil
			})
		})
	}
}

// doubleChecked: to avoid a call of Do, users first check a flag, which is set before the value is stored. Fixed, they
// call Do.
func doubleChecked(fixed bool) program {
	return func(ctx context.Context, s *Sim) {
		once := locks.NewOnce(coir.WithName("config"))
		var loaded atomic.Bool
		var config atomic.Pointer[string]
		get := func(ctx context.Context) error {
			if !fixed && loaded.Load() {
				return nil
			}
			return once.Do(ctx, func(ctx context.Context) error {
				loaded.Store(true)
				if err := coir.Sleep(ctx, time.Millisecond); err != nil {
					return err
				}
				text := "v1"
				config.Store(&text)
				return nil
			})
		}
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			for i := range 2 {
				n.Go("user", func(ctx context.Context) error {
					if err := get(ctx); err != nil {
						return err
					}
					if config.Load() == nil {
						s.Errorf("used before it was loaded")
					}
					return nil
				}, coir.WithIndex(i))
			}
		})
	}
}

// tooFewAtBarrier: a worker that finds no more work does not go to the barrier, and the others wait for it. The order
// decides which worker that is. Fixed, it goes to the barrier first and then ends.
func tooFewAtBarrier(fixed bool) program {
	return func(ctx context.Context, _ *Sim) {
		work, phase := coir.NewChan[int](3, coir.WithName("work")), locks.NewBarrier(2, coir.WithName("phase"))
		for i := range 3 {
			_ = work.Send(ctx, i)
		}
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			for i := range 2 {
				n.Go("worker", func(ctx context.Context) error {
					for range 2 {
						_, err := work.TryRecv()
						if err != nil && !fixed {
							return nil
						}
						if _, _, err := phase.Wait(ctx); err != nil {
							return err
						}
					}
					return nil
				}, coir.WithIndex(i))
			}
		})
	}
}

// waitWithoutLoop: two consumers wait once each, and Broadcast wakes both for one item. Fixed, each checks again.
func waitWithoutLoop(fixed bool) program {
	return func(ctx context.Context, s *Sim) {
		changed, items := coir.NewCond(coir.WithName("changed")), 0
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			for i := range 2 {
				n.Go("consumer", func(ctx context.Context) error {
					changed.Lock()
					defer changed.Unlock()
					for items == 0 {
						if err := changed.Wait(ctx); err != nil {
							return err
						}
						if !fixed {
							break
						}
					}
					if items--; items < 0 {
						s.Errorf("took an item that was not there")
					}
					return nil
				}, coir.WithIndex(i))
			}
			n.Go("producer", func(ctx context.Context) error {
				for range 2 {
					changed.Lock()
					items++
					changed.Broadcast()
					changed.Unlock()
					if err := coir.Yield(ctx); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
}

// changeAfterSignal: the producer signals, and only then changes the state that consumers wait for, without the lock. A
// consumer that checks in between waits forever. Fixed, it changes the state with the lock held, and then signals.
func changeAfterSignal(fixed bool) program {
	return func(ctx context.Context, _ *Sim) {
		changed := coir.NewCond(coir.WithName("changed"))
		var ready atomic.Bool
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			n.Go("consumer", func(ctx context.Context) error {
				changed.Lock()
				defer changed.Unlock()
				for !ready.Load() {
					if err := changed.Wait(ctx); err != nil {
						return err
					}
				}
				return nil
			})
			n.Go("producer", func(ctx context.Context) error {
				changed.Lock()
				if fixed {
					ready.Store(true)
				}
				changed.Signal()
				changed.Unlock()
				if !fixed {
					ready.Store(true)
				}
				return nil
			})
		})
	}
}

// ignoredTryLock: a fiber ignores TryLock's result, and unlocks what another one holds. Fixed, it checks the result.
func ignoredTryLock(fixed bool) program {
	return func(ctx context.Context, _ *Sim) {
		cache := locks.NewMutex(coir.WithName("cache"))
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			for i := range 2 {
				n.Go("refresh", func(ctx context.Context) error {
					if ok := cache.TryLock(); !ok && fixed {
						return nil // another one refreshes it
					}
					err := coir.Yield(ctx)
					cache.Unlock()
					return err
				}, coir.WithIndex(i))
			}
		})
	}
}

// A report shows which lock a fiber waits for, which fibers hold it and since when, and the cycle.
func TestReportOfALockOrder(t *testing.T) {
	f := found(t, KindDeadlock, lockOrder(false))
	says(t, f,
		"debit  waits to lock journal, held by credit since step ",
		"credit waits to lock accounts, held by debit since step ",
		"  cycle:\n    debit waits for credit\n    credit waits for debit\n",
		"lock accounts", "lock journal")
}

// The step is that of the operation that took the lock, even after a wait, after a select and after a try.
func TestReportSaysSinceWhen(t *testing.T) {
	for name, take := range map[string]func(ctx context.Context, m *locks.Mutex) error{
		"lock":       func(ctx context.Context, m *locks.Mutex) error { return m.Lock(ctx) },
		"select":     func(ctx context.Context, m *locks.Mutex) error { _, err := coir.Select(ctx, m.LockCase()); return err },
		"try lock":   func(_ context.Context, m *locks.Mutex) error { m.TryLock(); return nil },
		"try select": func(_ context.Context, m *locks.Mutex) error { _, err := coir.TrySelect(m.LockCase()); return err },
	} {
		t.Run(name, func(t *testing.T) {
			f := found(t, KindDeadlock, func(ctx context.Context, _ *Sim) {
				journal, never := locks.NewMutex(coir.WithName("journal")), coir.NewEvent(coir.WithName("never"))
				nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
					_ = take(ctx, journal) // step 1
					n.Go("waiter", journal.Lock)
					_ = never.Wait(ctx)
				})
			}, WithStrategy(func(uint64) Strategy { return RoundRobin() }))
			says(t, f, "waiter waits to lock journal, held by main since step 1")
		})
	}
}

func TestReportOfAHolderThatHasEnded(t *testing.T) {
	f := found(t, KindDeadlock, func(ctx context.Context, _ *Sim) {
		journal := locks.NewMutex(coir.WithName("journal"))
		nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
			holder := n.Go("holder", journal.Lock)
			_ = holder.Wait(ctx)
			_ = journal.Lock(ctx)
		})
	})
	says(t, f, "main waits to lock journal, held by holder, which has ended, since step ")
	saysNot(t, f, "cycle")
}

// A report says which fibers have the values of a pool, and names the cycle over a lock and a pool.
func TestReportOfAPool(t *testing.T) {
	f := found(t, KindDeadlock, func(ctx context.Context, _ *Sim) {
		conns := coir.NewPool(1, func(context.Context) (int, error) { return 1, nil }, nil, coir.WithName("conns"))
		cache := locks.NewMutex(coir.WithName("cache"))
		nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
			n.Go("query", func(ctx context.Context) error {
				c, err := conns.Get(ctx)
				if err != nil {
					return err
				}
				defer conns.Put(c) //nolint:errcheck // it was lent
				if err := cache.Lock(ctx); err != nil {
					return err
				}
				cache.Unlock()
				return nil
			})
			n.Go("refresh", func(ctx context.Context) error {
				if err := cache.Lock(ctx); err != nil {
					return err
				}
				defer cache.Unlock()
				c, err := conns.Get(ctx)
				if err != nil {
					return err
				}
				return conns.Put(c)
			})
		})
	})
	says(t, f, "refresh waits in Pool.Get for a value of conns, lent to query since step ",
		"query   waits to lock cache, held by refresh since step ",
		"  cycle:\n    query waits for refresh\n    refresh waits for query\n")
}

func TestReportOfALockThatNoFiberHolds(t *testing.T) {
	slots := locks.NewSemaphore(2, coir.WithName("slots"))
	slots.TryAcquire(2)
	f := found(t, KindDeadlock, func(ctx context.Context, _ *Sim) {
		nursery(ctx, func(ctx context.Context, n *coir.Nursery) { _ = slots.Acquire(ctx, 1) })
	})
	says(t, f, "main waits to acquire slots, which no fiber holds")
}

// A report names a few of many holders. A fiber does not hold a permit that it, or another fiber in its place, has
// given back.
func TestReportOfManyHolders(t *testing.T) {
	f := found(t, KindDeadlock, func(ctx context.Context, _ *Sim) {
		slots, never := locks.NewSemaphore(5, coir.WithName("slots")), coir.NewEvent(coir.WithName("never"))
		nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
			for i := range 5 {
				n.Go("holder", func(ctx context.Context) error {
					if err := slots.Acquire(ctx, 1); err != nil {
						return err
					}
					return never.Wait(ctx)
				}, coir.WithIndex(i))
			}
			_ = coir.Sleep(ctx, time.Second)
			n.Go("brief", func(ctx context.Context) error {
				if slots.TryAcquire(1) {
					return errors.New("there are 5")
				}
				slots.Release(1) // for a holder
				if !slots.TryAcquire(1) {
					return errors.New("one is free")
				}
				return never.Wait(ctx)
			})
			_ = coir.Sleep(ctx, time.Second)
			n.Go("waiter", func(ctx context.Context) error { return slots.Acquire(ctx, 5) })
		})
	}, WithStrategy(func(uint64) Strategy { return RoundRobin() }))
	says(t, f, "waiter waits to acquire slots, held by holder[1] since step 11, holder[2] since step 14, "+
		"holder[3] since step 17 (at sim/corpus_locks_test.go:", ") and 2 more", "  holder[0..4] wait for the event never, at ",
		" (5 fibers, steps 9 to 21, at 0s; spawned at sim/")
	saysNot(t, f, "holder[0] since")
}

// If another fiber unlocks a lock, its holder no longer holds it. If it passes to a waiter, the waiter then holds it.
func TestReportOfWhatOthersGaveBack(t *testing.T) {
	inTurn := WithStrategy(func(uint64) Strategy { return RoundRobin() })
	t.Run("to a waiter", func(t *testing.T) {
		for name, take := range map[string]func(ctx context.Context, m *locks.Mutex) error{
			"lock":   func(ctx context.Context, m *locks.Mutex) error { return m.Lock(ctx) },
			"select": func(ctx context.Context, m *locks.Mutex) error { _, err := coir.Select(ctx, m.LockCase()); return err },
		} {
			for unlocks := range 3 {
				f := found(t, KindDeadlock, func(ctx context.Context, _ *Sim) {
					journal, never := locks.NewMutex(coir.WithName("journal")), coir.NewEvent(coir.WithName("never"))
					nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
						_ = journal.Lock(ctx) // step 1
						for _, name := range []string{"first", "second", "third"} {
							n.Go(name, func(ctx context.Context) error {
								if err := take(ctx, journal); err != nil {
									return err
								}
								return never.Wait(ctx)
							})
							_ = coir.Sleep(ctx, time.Second)
						}
						n.Go("other", func(context.Context) error {
							for range unlocks {
								journal.Unlock()
							}
							return nil
						})
					})
				}, WithStrategy(func(uint64) Strategy { return stay{} }))
				switch unlocks {
				case 0:
					says(t, f, "first, second, third wait ", "to lock journal, held by main since step 1 (at sim/corpus_locks_test.go:", "(3 fibers, steps ")
				case 1:
					says(t, f, "third  waits", fmt.Sprintf("journal, held by first since step %d (at sim/corpus_locks_test.go:", stepOf(t, f, "other", "unlock journal", 1)))
				case 2:
					says(t, f, "third  waits", fmt.Sprintf("journal, held by second since step %d (at sim/corpus_locks_test.go:", stepOf(t, f, "other", "unlock journal", 2)))
				}
				if t.Failed() {
					t.Fatalf("%s, %d unlocks", name, unlocks)
				}
			}
		}
	})
	t.Run("of several holders", func(t *testing.T) {
		f := found(t, KindDeadlock, func(ctx context.Context, _ *Sim) {
			slots, never := locks.NewSemaphore(6, coir.WithName("slots")), coir.NewEvent(coir.WithName("never"))
			nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
				for i := range 3 {
					n.Go("holder", func(ctx context.Context) error {
						if err := slots.Acquire(ctx, 2); err != nil {
							return err
						}
						return never.Wait(ctx)
					}, coir.WithIndex(i))
				}
				_ = coir.Sleep(ctx, time.Second)
				slots.Release(4) // of two holders
				_ = slots.Acquire(ctx, 6)
			})
		}, inTurn)
		says(t, f, "held by holder[2] since")
		saysNot(t, f, "holder[0] since", "holder[1] since")
	})
}

// stay lets the running fiber continue as long as it can.
type stay struct{}

func (stay) Begin(schedule int) bool { return schedule == 0 }
func (stay) Choose(*Fork) int        { return 0 }
func (stay) Name() string            { return "stay" }

// stepOf returns the number of the step at which a fiber did something for the nth time.
func stepOf(t *testing.T, f *Failure, fiber, text string, nth int) int {
	t.Helper()
	r := newReport(f)
	for s := range f.trace {
		if e := &f.trace[s]; r.labels[e.fiber] == fiber && r.did(e) == text {
			if nth--; nth == 0 {
				return f.before + s + 1
			}
		}
	}
	t.Fatalf("%s did not %s as often:\n%v", fiber, text, f)
	return 0
}
