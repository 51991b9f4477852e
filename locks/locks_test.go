package locks_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/invariant"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/locks"
)

// run runs body in a nursery, and fails the test if the nursery returns an error.
func run(t *testing.T, body func(ctx context.Context, n *coir.Nursery)) {
	t.Helper()
	err := coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		body(ctx, n)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// both runs body in the given number of fibers and goroutines, half of each.
func both(t *testing.T, number int, body func(ctx context.Context, i int)) {
	t.Helper()
	var goroutines sync.WaitGroup
	run(t, func(_ context.Context, n *coir.Nursery) {
		for i := range number {
			if i%2 == 0 {
				goroutines.Go(func() { body(context.Background(), i) })
				continue
			}
			n.Go("client", func(ctx context.Context) error {
				body(ctx, i)
				return nil
			}, coir.WithIndex(i))
		}
	})
	goroutines.Wait()
}

func turns(most int) int {
	if testing.Short() || race.Enabled {
		return most / 10
	}
	return most
}

// Fibers and goroutines lock in every way, and some give up. No more is taken than there is, and in the end everything
// is free and there are no waiters.
func TestNeverMoreThanThereIs(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			l := k.make()
			var taken atomic.Int64
			never := coir.NewChan[int](0)
			both(t, 8, func(ctx context.Context, i int) {
				rnd := rand.New(rand.NewPCG(1, uint64(i)))
				for range turns(2000) {
					n := l.amounts[rnd.IntN(len(l.amounts))]
					in, cancel := ctx, func() {}
					if rnd.IntN(4) == 0 {
						in, cancel = coir.WithTimeout(ctx, time.Duration(rnd.IntN(20))*time.Microsecond)
					}
					var took bool
					switch rnd.IntN(4) {
					case 0:
						took = l.try(n)
					case 1:
						_, err := coir.Select(in, never.RecvCase(nil), l.takeCase(n))
						took = err == nil
					default:
						took = l.take(in, n) == nil
					}
					cancel()
					if !took {
						continue
					}
					if now := taken.Add(int64(n)); now > int64(l.size) {
						t.Errorf("%d of %d are taken", now, l.size)
					}
					if rnd.IntN(3) == 0 {
						_ = coir.Yield(ctx)
					}
					taken.Add(int64(-n))
					l.put(n)
				}
			})
			if !l.try(l.size) || !strings.Contains(l.describe(), "0 waiting") {
				t.Errorf("not all is free: %s", l.describe())
			}
		})
	}
}

// Eight contenders yield while they hold the lock, so there are always waiters. Once each has had the lock, they get it
// about equally often. There are enough rounds for two workers: the system may stop one for milliseconds, and its
// contender then misses rounds. The short test has few rounds and one worker.
func TestContendersAreServedEqually(t *testing.T) {
	workers, all := 2, 2_000_000
	if testing.Short() {
		workers, all = 1, 16_000
	}
	const contenders = 8
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			l := k.make()
			var served [contenders]int
			total, came := 0, 0
			rt := coir.NewRuntime(coir.WithWorkers(workers), coir.WithMaxWorkers(workers))
			defer func() { _ = rt.Close(context.Background()) }()
			err := rt.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
				for i := range contenders {
					n.Go("contender", func(ctx context.Context) error {
						for first, more := true, true; more; first = false {
							if err := l.take(ctx, l.size); err != nil {
								return err
							}
							if first {
								came++
							}
							if more = total < all; more && came == contenders {
								total++
								served[i]++
							}
							_ = coir.Yield(ctx)
							l.put(l.size)
						}
						return nil
					}, coir.WithIndex(i))
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			t.Logf("with %d workers they were served %v times", workers, served)
			if least, most := slices.Min(served[:]), slices.Max(served[:]); most > 2*least {
				t.Errorf("of %d contenders one was served %d times, another %d times", contenders, least, most)
			}
		})
	}
}

func TestContextThatHasEnded(t *testing.T) {
	for _, k := range kinds() {
		l := k.make()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := l.take(ctx, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: a goroutine got %v", k.name, err)
		}
		run(t, func(ctx context.Context, _ *coir.Nursery) {
			in, cancel := coir.WithCancel(ctx)
			cancel()
			if err := l.take(in, 1); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: a fiber got %v", k.name, err)
			}
			if i, err := coir.Select(in, l.takeCase(1)); i != -1 || !errors.Is(err, context.Canceled) {
				t.Errorf("%s: a select got %d, %v", k.name, i, err)
			}
		})
		if !l.try(l.size) {
			t.Errorf("%s: something was taken: %s", k.name, l.describe())
		}
	}
}

// panicOf returns the text of fn's panic.
func panicOf(fn func()) (text string) {
	defer func() {
		if p := recover(); p != nil {
			text = fmt.Sprint(p)
		}
	}()
	fn()
	return ""
}

func TestMisusePanics(t *testing.T) {
	ctx := context.Background()
	m, rw, s := locks.NewMutex(coir.WithName("accounts")), new(locks.RWMutex), locks.NewSemaphore(2, coir.WithName("slots"))
	reading, writing := new(locks.RWMutex), locks.NewRWMutex(coir.WithName("table"))
	if !reading.TryRLock() || !writing.TryLock() || !s.TryAcquire(1) {
		t.Fatal("not free")
	}
	unlocked := new(locks.Mutex)
	if err := unlocked.Lock(ctx); err != nil {
		t.Fatal(err)
	}
	unlocked.Unlock()
	for _, c := range []struct {
		fn   func()
		want string
	}{
		{m.Unlock, "locks: Unlock of Mutex accounts, which is not locked"},
		{unlocked.Unlock, "locks: Unlock of a Mutex, which is not locked"},
		{rw.Unlock, "locks: Unlock of an RWMutex, which is not locked for writing"},
		{rw.RUnlock, "locks: RUnlock of an RWMutex, which is not locked for reading"},
		{reading.Unlock, "locks: Unlock of an RWMutex, which is not locked for writing"},
		{writing.RUnlock, "locks: RUnlock of RWMutex table, which is not locked for reading"},
		{func() { s.Release(2) }, "locks: Release(2) of Semaphore slots, of which fewer permits are taken"},
		{func() { s.Release(0) }, "locks: 0 permits of Semaphore slots; must be 1 or more"},
		{func() { _ = s.Acquire(ctx, 0) }, "locks: 0 permits of Semaphore slots; must be 1 or more"},
		{func() { s.TryAcquire(-1) }, "locks: -1 permits of Semaphore slots; must be 1 or more"},
		{func() { s.AcquireCase(0) }, "locks: 0 permits of Semaphore slots; must be 1 or more"},
		{func() { locks.NewSemaphore(-1) }, "locks: NewSemaphore(-1): the size must be 0 or more"},
		{func() { locks.NewBarrier(0) }, "locks: NewBarrier(0): the size must be 1 or more"},
	} {
		if got := panicOf(c.fn); got != c.want {
			t.Errorf("got the panic %q, want %q", got, c.want)
		}
	}
	// Misuse changes nothing.
	if !m.TryLock() || !unlocked.TryLock() || !rw.TryLock() || !reading.TryRLock() || writing.TryRLock() || !s.TryAcquire(1) || s.TryAcquire(1) {
		t.Error("misuse has changed a lock")
	}
}

// A fiber panics while it holds a lock: the deferred Unlock unlocks it, and the nursery propagates the panic.
func TestPanicWhileHeld(t *testing.T) {
	for _, k := range kinds() {
		l := k.make()
		text := panicOf(func() {
			_ = coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
				n.Go("holder", func(ctx context.Context) error {
					if err := l.take(ctx, 1); err != nil {
						return err
					}
					defer l.put(1)
					panic("oops")
				})
				return nil
			})
		})
		if !strings.Contains(text, "oops") || !l.try(l.size) {
			t.Errorf("%s: the panic is %q, and then: %s", k.name, text, l.describe())
		}
	}
}

func TestMoreThanTheSize(t *testing.T) {
	ctx := context.Background()
	s := locks.NewSemaphore(2, coir.WithName("slots"))
	if !s.TryAcquire(1) {
		t.Fatal("not free")
	}
	for _, n := range []int{3, math.MaxInt} {
		if err := s.Acquire(ctx, n); err == nil {
			t.Errorf("Acquire(%d) of 2", n)
		}
		if s.TryAcquire(n) {
			t.Errorf("TryAcquire(%d) of 2", n)
		}
		if i, err := coir.Select(ctx, s.AcquireCase(n), coir.After(time.Microsecond)); i != 1 {
			t.Errorf("AcquireCase(%d) of 2: %d, %v", n, i, err)
		}
	}
	if err, want := s.Acquire(ctx, 3), "locks: Acquire(3) of Semaphore slots, which has 2 permits"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	large := locks.NewSemaphore(math.MaxInt)
	if err := large.Acquire(ctx, math.MaxInt); err != nil || large.TryAcquire(1) {
		t.Errorf("all of the largest semaphore: %v", err)
	}
	if large.Release(1); large.TryAcquire(2) || !large.TryAcquire(1) || large.TryAcquire(math.MaxInt) {
		t.Error("one permit is free")
	}
	if none := locks.NewSemaphore(0); none.TryAcquire(1) || none.Cap() != 0 {
		t.Error("a semaphore without permits has one")
	}
}

func TestLockerEndsNoWait(t *testing.T) {
	m := new(locks.Mutex)
	ctx, cancel := context.WithCancel(context.Background())
	l := m.Locker(ctx)
	cancel()
	l.Lock()
	if m.TryLock() {
		t.Error("the locker has not locked")
	}
	held := true
	done := make(chan struct{})
	go func() {
		l.Lock()
		if held {
			t.Error("two hold it")
		}
		l.Unlock()
		close(done)
	}()
	held = false
	l.Unlock()
	<-done
}

func TestStrings(t *testing.T) {
	m, rw := locks.NewMutex(coir.WithName("accounts")), locks.NewRWMutex(coir.WithName("table"))
	s, o := locks.NewSemaphore(2, coir.WithName("slots")), locks.NewOnce(coir.WithName("config"))
	s.TryAcquire(1)
	for _, c := range []struct{ got, want string }{
		{m.String(), "locks.Mutex(accounts, 0 waiting)"},
		{rw.String(), "locks.RWMutex(table, 0 waiting)"},
		{s.String(), "locks.Semaphore(slots, 0 waiting, 1 of 2 taken)"},
		{o.String(), "locks.Once(config, 0 waiting, not done)"},
		{locks.NewBarrier(2, coir.WithName("start")).String(), "locks.Barrier(coir.Cond(start, 0 waiting), for 2)"},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
	if err := o.Do(context.Background(), func(context.Context) error { return nil }); err != nil || !strings.HasSuffix(o.String(), ", done)") {
		t.Errorf("done, with %v: %s", err, o)
	}
}

// In the steady state, no lock operation allocates: with or without a wait, and in a select.
func TestLocksAllocateNothing(t *testing.T) {
	if invariant.Enabled || race.Enabled {
		t.Skip("these builds allocate")
	}
	for _, k := range kinds() {
		l := k.make()
		run(t, func(ctx context.Context, n *coir.Nursery) {
			never := coir.NewChan[int](0)
			var stop atomic.Bool
			n.Go("peer", func(ctx context.Context) error { // holds the lock when the other wants it
				for !stop.Load() {
					if err := l.take(ctx, l.size); err != nil {
						return err
					}
					_ = coir.Yield(ctx)
					l.put(l.size)
				}
				return nil
			})
			if got := testing.AllocsPerRun(200, func() {
				_ = coir.Yield(ctx)
				if l.take(ctx, 1) == nil {
					l.put(1)
				}
				_ = coir.Yield(ctx)
				if _, err := coir.Select(ctx, never.RecvCase(nil), l.takeCase(1)); err == nil {
					l.put(1)
				}
				if l.try(1) {
					l.put(1)
				}
			}); got != 0 {
				t.Errorf("%s: %v allocations", k.name, got)
			}
			stop.Store(true)
		})
	}
	b := locks.NewBarrier(2)
	run(t, func(ctx context.Context, n *coir.Nursery) {
		const rounds = 200
		n.Go("peer", func(ctx context.Context) error {
			for range rounds + 1 {
				_, _, _ = b.Wait(ctx)
			}
			return nil
		})
		if got := testing.AllocsPerRun(rounds, func() { _, _, _ = b.Wait(ctx) }); got != 0 {
			t.Errorf("Barrier: %v allocations", got)
		}
	})
}

func TestOnceTriesAgain(t *testing.T) {
	o, failed := new(locks.Once), errors.New("failed")
	ctx := context.Background()
	if err := o.Do(ctx, func(context.Context) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
	if text := panicOf(func() { _ = o.Do(ctx, func(context.Context) error { panic("oops") }) }); text != "oops" {
		t.Errorf("panicked with %q", text)
	}
	calls, value := 0, 0
	both(t, 8, func(ctx context.Context, i int) {
		err := o.Do(ctx, func(context.Context) error {
			if calls++; calls < 3 {
				return failed
			}
			value = calls
			return nil
		})
		if err == nil && value != 3 || err != nil && !errors.Is(err, failed) {
			t.Errorf("value %d, %v", value, err)
		}
	})
	if calls != 3 {
		t.Errorf("%d calls; two fail, the third does not", calls)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := o.Do(ended, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("under a context that has ended: %v", err)
	}
}

// In each round no caller continues before all have arrived, and exactly one is the last.
func TestBarrierRounds(t *testing.T) {
	const clients = 6
	b := locks.NewBarrier(clients)
	var came, last [1000]atomic.Int32
	rounds := turns(len(came))
	both(t, clients, func(ctx context.Context, _ int) {
		for want := range rounds {
			came[want].Add(1)
			round, l, err := b.Wait(ctx)
			if l {
				last[want].Add(1)
			}
			if err != nil || round != want || came[want].Load() != clients {
				t.Errorf("round %d instead of %d, %d have come, %v", round, want, came[want].Load(), err)
				return
			}
		}
	})
	for i := range rounds {
		if n := last[i].Load(); n != 1 {
			t.Errorf("round %d: %d were the last", i, n)
		}
	}
}

// A caller that has given up does not count as arrived.
func TestBarrierWithoutOneThatGaveUp(t *testing.T) {
	run(t, func(ctx context.Context, n *coir.Nursery) {
		b := locks.NewBarrier(2)
		in, cancel := coir.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		if _, _, err := b.Wait(in); !errors.Is(err, coir.ErrTimeout) {
			t.Errorf("alone: %v", err)
		}
		if _, _, err := b.Wait(in); !errors.Is(err, coir.ErrTimeout) {
			t.Errorf("under a context that has ended: %v", err)
		}
		n.Go("other", func(ctx context.Context) error {
			_, _, err := b.Wait(ctx)
			return err
		})
		if round, _, err := b.Wait(ctx); round != 0 || err != nil {
			t.Errorf("together: round %d, %v", round, err)
		}
	})
}

// Fibers that lock and unlock in a loop without yielding share one worker: the lock's fast path lets the others run.
func TestLoopingFibersShareAWorker(t *testing.T) {
	rt := coir.NewRuntime(coir.WithWorkers(1))
	defer func() {
		if err := rt.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	var m locks.Mutex
	left, served := 100_000, make([]int, 8)
	err := rt.Run(t.Context(), func(_ context.Context, n *coir.Nursery) error {
		for i := range served {
			n.Go("loop", func(ctx context.Context) error {
				for {
					if err := m.Lock(ctx); err != nil {
						return err
					}
					if left == 0 {
						m.Unlock()
						return nil
					}
					left--
					served[i]++
					m.Unlock()
				}
			}, coir.WithIndex(i))
		}
		return nil
	})
	if least, most := slices.Min(served), slices.Max(served); err != nil || most > 2*least {
		t.Errorf("served %v, %v", served, err)
	}
}

// A select with two cases of the same lock does not wait for itself.
func TestSelectOfTwoCasesOfOneLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, rw := locks.NewSemaphore(2), locks.NewRWMutex()
		err := coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
			if err := errors.Join(s.Acquire(ctx, 2), rw.RLock(ctx)); err != nil {
				return err
			}
			n.Go("permits", func(ctx context.Context) error {
				i, err := coir.Select(ctx, s.AcquireCase(2), s.AcquireCase(1))
				if i != 1 {
					t.Errorf("case %d, %v", i, err)
				}
				return err
			})
			n.Go("readers", func(ctx context.Context) error {
				i, err := coir.Select(ctx, rw.LockCase(), rw.RLockCase())
				if i != 1 {
					t.Errorf("case %d, %v", i, err)
				}
				return err
			})
			synctest.Wait()
			s.Release(1)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// A zero Barrier and a nil function for a Once panic with a clear text.
func TestMisuseIsASentence(t *testing.T) {
	for want, use := range map[string]func(){
		"locks: use of a Barrier that was not made by NewBarrier": func() { _, _, _ = new(locks.Barrier).Wait(t.Context()) },
		"locks: Do(nil) of Once config: there is nothing to call": func() {
			_ = locks.NewOnce(coir.WithName("config")).Do(t.Context(), nil)
		},
	} {
		func() {
			defer func() {
				if got := recover(); got != want {
					t.Errorf("panicked with %v, want %q", got, want)
				}
			}()
			use()
		}()
	}
}

// The error of a wait that timed out has the name of the lock.
func TestTimeoutsTellTheName(t *testing.T) {
	ctx := t.Context()
	m, rw, sem := locks.NewMutex(coir.WithName("store")), locks.NewRWMutex(coir.WithName("table")), locks.NewSemaphore(1)
	_, _, _ = m.Lock(ctx), rw.Lock(ctx), sem.Acquire(ctx, 1)
	waits := func(ctx context.Context) {
		late, stop := coir.WithTimeout(ctx, time.Millisecond)
		defer stop()
		for want, err := range map[string]error{
			"coir: wait to lock store: timed out":      m.Lock(late),
			"coir: wait to read-lock table: timed out": rw.RLock(late),
			"coir: timed out":                          sem.Acquire(late, 1),
		} {
			if err == nil || err.Error() != want || !errors.Is(err, coir.ErrTimeout) ||
				!errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want %s", err, want)
			}
		}
	}
	waits(ctx)
	run(t, func(ctx context.Context, _ *coir.Nursery) { waits(ctx) })
}
