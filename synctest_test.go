package coir_test

// Programs run in bubbles of testing/synctest, outside, and both. Time in a bubble is exact to the nanosecond, a bubble
// that leaves a goroutine behind panics, and misuse panics with an explanation.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coir-go/coir"
)

// place is where a program runs: in a bubble, where time is exact, or outside.
type place struct {
	*testing.T
	ctx  context.Context
	fake bool
}

// took checks how long something took: exactly the given time in a bubble, and at least that outside.
func (p place) took(since time.Time, want time.Duration) {
	p.Helper()
	if d := time.Since(since); p.fake && d != want || d < want {
		p.Errorf("took %v, want %v", d, want)
	}
}

func (p place) run(fn func(ctx context.Context, n *coir.Nursery) error) {
	p.Helper()
	if err := coir.Run(p.ctx, fn); err != nil {
		p.Errorf("Run: %v", err)
	}
}

// want checks an error.
func (p place) want(err, want error) {
	p.Helper()
	if !errors.Is(err, want) {
		p.Errorf("got %v, want %v", err, want)
	}
}

const moment = 2 * time.Millisecond

// bubblePrograms are complete programs for the default runtime, or for their own, that work in a bubble and outside.
var bubblePrograms = []struct {
	name string
	run  func(p place)
}{
	{"a goroutine receives with a time limit", func(p place) {
		start := time.Now()
		_, err := coir.NewChan[int](0).RecvTimeout(p.ctx, moment)
		p.want(err, coir.ErrTimeout)
		p.took(start, moment)
	}},
	{"a goroutine sends with a time limit", func(p place) {
		start := time.Now()
		p.want(coir.NewChan[int](0).SendTimeout(context.Background(), 1, moment), coir.ErrTimeout)
		p.took(start, moment)
	}},
	{"a goroutine waits in a scope with a time limit", func(p place) {
		start := time.Now()
		ctx, cancel := coir.WithTimeout(p.ctx, moment)
		defer cancel()
		_, err := coir.NewChan[int](0).Recv(ctx)
		p.want(err, coir.ErrTimeout)
		<-ctx.Done()
		p.took(start, moment)
		inner, stop := coir.WithTimeout(context.Background(), time.Hour)
		stop()
		p.want(coir.Sleep(inner, time.Second), context.Canceled)
	}},
	{"a goroutine sleeps", func(p place) {
		start := time.Now()
		p.want(coir.Sleep(p.ctx, moment), nil)
		p.want(coir.Sleep(context.Background(), 3), nil)
		p.took(start, moment+3)
	}},
	{"goroutines send and receive", func(p place) {
		ch := coir.NewChan[int](0)
		go func() {
			for i := range 10 {
				_ = ch.Send(p.ctx, i)
			}
			ch.Close()
		}()
		p.wantValues(ch, 10)
	}},
	{"a goroutine is cancelled by a context of the standard library", func(p place) {
		ctx, cancel := context.WithTimeout(p.ctx, moment)
		defer cancel()
		_, err := coir.NewChan[int](0).Recv(ctx)
		p.want(err, coir.ErrTimeout)
	}},
	{"a goroutine selects among channels and time", func(p place) {
		a, b := coir.NewChan[int](0), coir.NewChan[int](1)
		var v int
		start := time.Now()
		if i, err := coir.Select(p.ctx, a.RecvCase(&v), b.RecvCase(&v), coir.After(moment)); i != 2 || err != nil {
			p.Errorf("case %d, %v", i, err)
		}
		p.took(start, moment)
		go func() { time.Sleep(moment); _ = a.Send(context.Background(), 7) }()
		if i, err := coir.Select(p.ctx, a.RecvCase(&v), b.RecvCase(&v)); i != 0 || err != nil || v != 7 {
			p.Errorf("case %d, %v, %d", i, err, v)
		}
		p.took(start, 2*moment)
	}},
	{"a selector waits for time", func(p place) {
		s := coir.NewSelector()
		defer s.Clear()
		var v int
		ch := coir.NewChan[int](0)
		s.Add(ch.RecvCase(&v))
		start := time.Now()
		late := s.Add(coir.After(moment))
		if id, err := s.Wait(p.ctx); id != late || err != nil {
			p.Errorf("case %d, %v", id, err)
		}
		p.took(start, moment)
	}},
	{"fibers sleep", func(p place) {
		start := time.Now()
		p.run(func(ctx context.Context, n *coir.Nursery) error {
			for i := range 5 {
				n.Go("sleeper", func(ctx context.Context) error { return coir.Sleep(ctx, time.Duration(i)*moment) })
			}
			return nil
		})
		p.took(start, 4*moment)
	}},
	{"a pipeline of fibers", func(p place) {
		first, last := coir.NewChan[int](0), coir.NewChan[int](3)
		p.run(func(ctx context.Context, n *coir.Nursery) error {
			n.Go("source", func(ctx context.Context) error {
				defer first.Close()
				for i := range 20 {
					if err := first.Send(ctx, i); err != nil {
						return err
					}
				}
				return nil
			})
			n.Go("stage", func(ctx context.Context) error {
				defer last.Close()
				for v, err := range first.All(ctx) {
					if err != nil {
						return err
					}
					if err := errors.Join(coir.Yield(ctx), last.Send(ctx, v)); err != nil {
						return err
					}
				}
				return nil
			})
			p.wantValues(last, 20)
			return nil
		})
	}},
	{"fibers and goroutines share channels", func(p place) {
		ask, answer := coir.NewChan[int](0), coir.NewChan[int](0)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for v, err := range ask.All(p.ctx) {
				if err != nil {
					return
				}
				time.Sleep(time.Microsecond)
				_ = answer.Send(p.ctx, 2*v)
			}
		}()
		p.run(func(ctx context.Context, n *coir.Nursery) error {
			defer ask.Close()
			for i := range 5 {
				if err := ask.Send(ctx, i); err != nil {
					return err
				}
				if v, err := answer.Recv(ctx); v != 2*i || err != nil {
					return fmt.Errorf("received %d, %v, want %d, nil", v, err, 2*i)
				}
			}
			return nil
		})
		<-done
	}},
	{"goroutines run nurseries at once", func(p place) {
		var all sync.WaitGroup
		var ended atomic.Int32
		for range 4 {
			all.Go(func() {
				p.run(func(ctx context.Context, n *coir.Nursery) error {
					n.Go("child", func(ctx context.Context) error {
						ended.Add(1)
						return coir.Sleep(ctx, moment)
					})
					return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error { return coir.Yield(ctx) })
				})
			})
		}
		all.Wait()
		if ended.Load() != 4 {
			p.Errorf("%d children", ended.Load())
		}
	}},
	{"a deadline cancels a nursery", func(p place) {
		start := time.Now()
		ctx, cancel := coir.WithTimeout(p.ctx, moment)
		defer cancel()
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			for range 3 {
				n.Go("stuck", func(ctx context.Context) error { return coir.Sleep(ctx, time.Hour) })
			}
			return nil
		})
		p.want(err, coir.ErrTimeout)
		p.took(start, moment)
	}},
	{"a child's error cancels the others", func(p place) {
		failed := errors.New("failed")
		start := time.Now()
		err := coir.Run(p.ctx, func(ctx context.Context, n *coir.Nursery) error {
			n.Go("stuck", func(ctx context.Context) error { return coir.Sleep(ctx, time.Hour) })
			n.Go("fails", func(ctx context.Context) error { return errors.Join(coir.Sleep(ctx, moment), failed) })
			return nil
		})
		p.want(err, failed)
		p.took(start, moment)
	}},
	{"a nursery is cancelled from a goroutine", func(p place) {
		cause := errors.New("enough")
		start := time.Now()
		err := coir.Run(p.ctx, func(ctx context.Context, n *coir.Nursery) error {
			go func() { time.Sleep(moment); n.Cancel(cause) }()
			return coir.Sleep(ctx, time.Hour)
		})
		p.want(err, context.Canceled)
		p.took(start, moment)
	}},
	{"a panic comes out of Run", func(p place) {
		defer func() {
			if e, ok := recover().(*coir.PanicError); !ok || e.Value != "oh" {
				p.Errorf("recovered %v", e)
			}
		}()
		_ = coir.Run(p.ctx, func(ctx context.Context, n *coir.Nursery) error {
			n.Go("panics", func(context.Context) error { panic("oh") })
			return coir.Sleep(ctx, time.Hour)
		})
	}},
	{"a fiber ends by Goexit", func(p place) {
		p.run(func(ctx context.Context, n *coir.Nursery) error {
			for range 20 {
				n.Go("exits", func(context.Context) error { runtime.Goexit(); return nil })
			}
			return coir.Sleep(ctx, moment)
		})
	}},
	{"fibers block natively", func(p place) {
		start := time.Now()
		p.run(func(ctx context.Context, n *coir.Nursery) error {
			for range 5 {
				n.Go("blocks", func(ctx context.Context) error {
					blocking(ctx, func() { time.Sleep(moment) })
					return coir.Sleep(ctx, moment)
				})
			}
			return nil
		})
		if p.fake {
			p.took(start, 2*moment)
		}
	}},
	{"a fiber is held in native code", func(p place) {
		p.run(func(ctx context.Context, n *coir.Nursery) error {
			gate := make(chan struct{})
			for range 3 {
				n.Go("held", func(ctx context.Context) error { <-gate; return nil })
			}
			n.Go("opens", func(ctx context.Context) error { close(gate); return nil })
			return nil
		})
	}},
	{"a limit, an ordered queue and a pool", func(p place) {
		pool := coir.NewPool(2, func(context.Context) (int, error) { return 1, nil }, nil)
		defer pool.Close()
		p.run(func(ctx context.Context, n *coir.Nursery) error {
			n.Limit(2)
			o := coir.NewOrdered[int](coir.Unbounded)
			for i := range 6 {
				err := o.Go(ctx, n, "task", func(ctx context.Context) (int, error) {
					v, err := pool.Get(ctx)
					if err != nil {
						return 0, err
					}
					err = coir.Sleep(ctx, time.Duration(6-i)*time.Microsecond)
					return i, errors.Join(err, pool.Put(v))
				})
				if err != nil {
					return err
				}
			}
			o.Close()
			i := 0
			for v, err := range o.All(ctx) {
				if v != i || err != nil {
					p.Errorf("%d: %d, %v", i, v, err)
				}
				i++
			}
			return nil
		})
	}},
	{"a shielded end after a cancel", func(p place) {
		start := time.Now()
		ctx, cancel := coir.WithCancelCause(p.ctx)
		defer cancel(nil)
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			n.Go("tidies", func(ctx context.Context) error {
				_ = coir.Sleep(ctx, time.Hour)
				return coir.Sleep(coir.Shield(ctx), moment)
			})
			if err := coir.Sleep(ctx, moment); err != nil {
				return err
			}
			cancel(nil)
			return nil
		})
		p.want(err, nil)
		p.took(start, 2*moment)
	}},
	{"many fibers", func(p place) {
		start := time.Now()
		ch := coir.NewChan[int](0)
		p.run(func(ctx context.Context, n *coir.Nursery) error {
			for i := range 300 {
				n.Go("sends", func(ctx context.Context) error {
					return errors.Join(coir.Sleep(ctx, time.Duration(i%7)*(moment/8)), ch.Send(ctx, i))
				})
			}
			for range 300 {
				if _, err := ch.Recv(ctx); err != nil {
					return err
				}
			}
			return nil
		})
		p.took(start, 6*(moment/8))
	}},
	{"a runtime of its own", func(p place) {
		rt := coir.NewRuntime(coir.WithWorkers(2))
		start := time.Now()
		for range 2 {
			p.want(rt.Run(p.ctx, func(ctx context.Context, n *coir.Nursery) error {
				n.Go("child", func(ctx context.Context) error { return coir.Sleep(ctx, moment) })
				_, err := coir.NewChan[int](0).RecvTimeout(ctx, moment)
				if !errors.Is(err, coir.ErrTimeout) {
					return err
				}
				return nil
			}), nil)
		}
		p.took(start, 2*moment)
		p.want(rt.Close(p.ctx), nil)
		p.want(rt.Run(p.ctx, nothing), coir.ErrClosed)
	}},
	{"a runtime that is closed while it is used", func(p place) {
		rt := coir.NewRuntime(coir.WithWorkers(1))
		begun, ended := make(chan struct{}), make(chan error, 1)
		go func() {
			ended <- rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
				close(begun)
				return coir.Sleep(ctx, time.Hour)
			})
		}()
		<-begun
		p.want(rt.Close(p.ctx), nil)
		p.want(<-ended, context.Canceled)
	}},
	{"a fiber of one runtime runs another", func(p place) {
		rt := coir.NewRuntime(coir.WithWorkers(1))
		p.run(func(ctx context.Context, n *coir.Nursery) error {
			return rt.Run(ctx, func(ctx context.Context, n *coir.Nursery) error { return coir.Sleep(ctx, moment) })
		})
		p.want(rt.Close(p.ctx), nil)
	}},
}

func (p place) wantValues(ch *coir.Chan[int], n int) {
	p.Helper()
	i := 0
	for v, err := range ch.All(p.ctx) {
		if err != nil {
			return
		}
		if v != i {
			p.Errorf("received %d, want %d", v, i)
		}
		i++
	}
	if i != n {
		p.Errorf("%d values, want %d", i, n)
	}
}

// inBubble runs a program in its own bubble.
func inBubble(t *testing.T, f func(p place)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(place{t, t.Context(), true}) })
}

// TestProgramsInAndOut: each program works inside, then outside, then inside.
func TestProgramsInAndOut(t *testing.T) {
	defer goroutines(t)()
	for _, prog := range bubblePrograms {
		t.Run(prog.name, func(t *testing.T) {
			inBubble(t, prog.run)
			prog.run(place{t, t.Context(), false})
			inBubble(t, prog.run)
		})
	}
}

// TestProgramsShareABubble: several programs in one bubble, one after the other and concurrently.
func TestProgramsShareABubble(t *testing.T) {
	defer goroutines(t)()
	inBubble(t, func(p place) {
		for _, prog := range bubblePrograms {
			prog.run(p)
		}
	})
	inBubble(t, func(p place) {
		p.fake = false // others move the time
		var all sync.WaitGroup
		for _, prog := range bubblePrograms {
			all.Go(func() { prog.run(p) })
		}
		all.Wait()
	})
}

// TestProgramsInAnyOrder: sequences of programs, in bubbles and outside, some of them concurrent.
func TestProgramsInAnyOrder(t *testing.T) {
	defer goroutines(t)()
	t.Run("all", func(t *testing.T) { // ends when the parallel ones have
		for seed := range uint64(30) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				r := rand.New(rand.NewPCG(seed, 0))
				for range 8 {
					prog := bubblePrograms[r.IntN(len(bubblePrograms))]
					next := bubblePrograms[r.IntN(len(bubblePrograms))]
					if r.IntN(3) == 0 {
						prog.run(place{t, context.Background(), false})
					} else {
						inBubble(t, func(p place) { prog.run(p); next.run(p) })
					}
				}
			})
		}
	})
}

// TestManyBubbles: what one bubble leaves behind does not accumulate.
func TestManyBubbles(t *testing.T) {
	defer goroutines(t)()
	for range 200 {
		inBubble(t, func(p place) {
			p.run(func(ctx context.Context, n *coir.Nursery) error {
				n.Go("child", func(ctx context.Context) error { return coir.Sleep(ctx, time.Hour) })
				return nil
			})
		})
	}
}

// TestRuntimeThatIsNotClosed: a bubble ends though the runtimes in it were not closed.
func TestRuntimeThatIsNotClosed(t *testing.T) {
	defer goroutines(t)()
	inBubble(t, func(p place) {
		rt := coir.NewRuntime()
		p.want(rt.Run(p.ctx, func(ctx context.Context, n *coir.Nursery) error {
			for range 50 {
				n.Go("child", func(ctx context.Context) error { return coir.Sleep(ctx, time.Second) })
			}
			return nil
		}), nil)
	})
}

// TestWaitInABubble: fibers that wait are durably blocked, and time does not pass for synctest.Wait.
func TestWaitInABubble(t *testing.T) {
	inBubble(t, func(p place) {
		start := time.Now()
		ch := coir.NewChan[int](0)
		var got atomic.Int32
		done := make(chan struct{})
		go func() {
			defer close(done)
			p.run(func(ctx context.Context, n *coir.Nursery) error {
				for range 3 {
					n.Go("receives", func(ctx context.Context) error {
						_, err := ch.Recv(ctx)
						got.Add(1)
						return err
					})
				}
				return nil
			})
		}()
		for i := range 3 {
			synctest.Wait()
			if int(got.Load()) != i {
				t.Errorf("%d have received, want %d", got.Load(), i)
			}
			p.want(ch.Send(p.ctx, i), nil)
		}
		<-done
		p.took(start, 0)
	})
}

// shared is used in bubbles and outside, like a channel in a package variable.
var shared = coir.NewChan[int](1)

// TestPackageChannel: a fiber or goroutine that waits on a channel from outside is still durably blocked.
func TestPackageChannel(t *testing.T) {
	program := func(p place) {
		start := time.Now()
		go func() { time.Sleep(moment); _ = shared.Send(p.ctx, 1) }()
		_, err := shared.Recv(p.ctx)
		p.want(err, nil)
		p.run(func(ctx context.Context, n *coir.Nursery) error {
			n.Go("sends", func(ctx context.Context) error {
				return errors.Join(coir.Sleep(ctx, moment), shared.Send(ctx, 2))
			})
			_, err := shared.Recv(ctx)
			return err
		})
		p.took(start, 2*moment)
	}
	inBubble(t, program)
	program(place{t, t.Context(), false})
	inBubble(t, program)
}

// TestWakeOutsideFromABubble: a goroutine and fibers outside are woken from a bubble.
func TestWakeOutsideFromABubble(t *testing.T) {
	defer goroutines(t)()
	ch := coir.NewChan[int](0)
	got := make(chan int, 2)
	wake := func() {
		// The channel is from outside, so the bubble waits for what happens there.
		inBubble(t, func(p place) { p.want(ch.Send(context.Background(), 1), nil); <-got })
	}
	go func() { v, _ := ch.Recv(context.Background()); got <- v }()
	awaitReceiver(t, ch)
	wake()
	place{t, t.Context(), false}.run(func(ctx context.Context, n *coir.Nursery) error {
		for range 20 {
			n.Go("receives", func(ctx context.Context) error { v, err := ch.Recv(ctx); got <- v; return err })
			blocking(ctx, func() {
				awaitReceiver(t, ch)
				wake()
			})
		}
		return nil
	})
}

// awaitReceiver waits until a receiver waits.
func awaitReceiver(t *testing.T, ch *coir.Chan[int]) {
	t.Helper()
	for end := time.Now().Add(patience); ch.Stats().Recv.Waiting == 0; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("there is no receiver")
		}
	}
}

// TestBubbleInAFiber: a fiber may run a bubble, like any goroutine.
func TestBubbleInAFiber(t *testing.T) {
	defer goroutines(t)()
	place{t, t.Context(), false}.run(func(ctx context.Context, n *coir.Nursery) error {
		for _, i := range []int{0, 8, 9} {
			blocking(ctx, func() { inBubble(t, bubblePrograms[i].run) })
			inBubble(t, bubblePrograms[i].run)
		}
		return coir.Sleep(ctx, moment)
	})
}

// TestOuterContextInABubble: a context that coir made outside provides its values in a bubble and, if its channel
// exists, its cancellation.
func TestOuterContextInABubble(t *testing.T) {
	outer, cancel := coir.WithCancelCause(t.Context())
	defer cancel(nil)
	said := "use a context that was made there, such as t.Context()"
	inBubble(t, func(p place) {
		panicsWith(t, said, func() { outer.Done() })
		panicsWith(t, said, func() { _, _ = coir.NewChan[int](0).Recv(outer) })
		start := time.Now()
		ctx, stop := coir.WithTimeout(outer, moment)
		defer stop()
		_, err := coir.NewChan[int](0).Recv(ctx)
		p.want(err, coir.ErrTimeout)
		p.took(start, moment)
	})
	outer.Done()
	inBubble(t, func(p place) {
		panicsWith(t, "", func() { outer.Done() })
		cancel(nil)
		_, err := coir.NewChan[int](0).Recv(outer)
		p.want(err, context.Canceled)
	})
}

// panicsWith checks that f panics with the text, or, if it is empty, that f does not panic.
func panicsWith(t *testing.T, sentence string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		switch r := recover(); {
		case r == nil && sentence != "":
			t.Errorf("no panic, want %q", sentence)
		case r != nil && (sentence == "" || !strings.Contains(fmt.Sprint(r), sentence)):
			t.Errorf("panic %q, want %q", r, sentence)
		}
	}()
	f()
}

// TestRuntimeElsewhere: a runtime must be used where it was made.
func TestRuntimeElsewhere(t *testing.T) {
	defer goroutines(t)()
	idle := func(context.Context, *coir.Nursery) error { return nil }
	out := coir.NewRuntime()
	var in *coir.Runtime
	elsewhere := func(rt *coir.Runtime) {
		t.Helper()
		ctx := context.Background()
		panicsWith(t, "make the runtime where it is used, or call coir.Run", func() { _ = rt.Run(ctx, idle) })
		panicsWith(t, "close a runtime where it was made", func() { _ = rt.Close(ctx) })
	}
	inBubble(t, func(p place) {
		in = coir.NewRuntime()
		p.want(in.Run(p.ctx, idle), nil)
		elsewhere(out)
	})
	elsewhere(in)
	inBubble(t, func(place) { elsewhere(in) })
	if err := errors.Join(out.Run(t.Context(), idle), out.Close(t.Context())); err != nil {
		t.Error(err)
	}
}

// TestGoElsewhere: fibers must be started where their nursery is.
func TestGoElsewhere(t *testing.T) {
	defer goroutines(t)()
	const said = "start fibers from where the nursery is"
	start := func(n *coir.Nursery) { n.Go("stray", func(context.Context) error { return nil }) }
	place{t, t.Context(), false}.run(func(ctx context.Context, n *coir.Nursery) error {
		inBubble(t, func(p place) {
			panicsWith(t, said, func() { start(n) })
			p.run(func(ctx context.Context, _ *coir.Nursery) error {
				panicsWith(t, said, func() { start(n) })
				return nil
			})
		})
		start(n)
		return nil
	})
	outside := make(chan *coir.Nursery)
	done := make(chan struct{})
	go func() {
		defer close(done)
		n := <-outside
		panicsWith(t, said, func() { start(n) })
	}()
	inBubble(t, func(p place) {
		p.run(func(ctx context.Context, n *coir.Nursery) error { outside <- n; <-done; return nil })
	})
}

// fatalPrograms wake a waiter in a bubble from outside. The waiter sleeps forever, so they end the process, with an
// explanation by coir and not by the Go runtime.
var fatalPrograms = map[string]struct {
	sentence string
	run      func(t *testing.T)
}{
	"goroutine": {"waits in synctest bubble 1 was woken by one that runs outside of all", func(t *testing.T) {
		ch := coir.NewChan[int](0)
		wakeFromOutside(t, ch, func(p place) { ch.All(context.Background())(forever) })
	}},
	"goroutine with a context": {"coir: a goroutine that waits in synctest bubble 1 was woken", func(t *testing.T) {
		ch := coir.NewChan[int](0)
		wakeFromOutside(t, ch, func(p place) { ch.All(p.ctx)(forever) })
	}},
	"fiber": {"coir: a fiber that runs in synctest bubble 1 was started or woken", func(t *testing.T) {
		ch := coir.NewChan[int](0)
		wakeFromOutside(t, ch, func(p place) {
			p.run(func(ctx context.Context, _ *coir.Nursery) error { ch.All(ctx)(forever); return nil })
		})
	}},
	"cancel": {"coir: a context that was made in synctest bubble 1 was cancelled by", func(t *testing.T) {
		outside := make(chan int)
		cancels := make(chan context.CancelCauseFunc, 1)
		go func() { (<-cancels)(nil) }()
		inBubble(t, func(p place) {
			ctx, cancel := coir.WithCancelCause(p.ctx)
			ctx.Done()
			cancels <- cancel
			<-outside
		})
	}},
	"blocked workers": {"where all workers are blocked", func(t *testing.T) {
		ch := coir.NewChan[int](0)
		rt := coir.NewRuntime(coir.WithWorkers(1), coir.WithMaxWorkers(1)) // else one may stand by
		_ = rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
			n.Go("receives", func(ctx context.Context) error { _, err := ch.Recv(ctx); return err })
			for ch.Stats().Recv.Waiting == 0 {
				_ = coir.Yield(ctx)
			}
			blocking(ctx, func() { inBubble(t, func(p place) { _ = ch.Send(context.Background(), 1) }) })
			return nil
		})
	}},
}

func forever(int, error) bool { return true }

// wakeFromOutside sends from outside to a receiver in a bubble, until one was parked.
func wakeFromOutside(t *testing.T, ch *coir.Chan[int], wait func(p place)) {
	outside := make(chan int)
	go func() {
		for {
			awaitReceiver(t, ch)
			runtime.Gosched()
			_ = ch.Send(context.Background(), 1)
		}
	}()
	inBubble(t, func(p place) {
		go wait(p)
		<-outside // keeps the bubble from being durably blocked
	})
}

// TestWakeIntoABubble runs each of the fatal programs in its own process.
func TestWakeIntoABubble(t *testing.T) {
	const variable = "COIR_FATAL_PROGRAM"
	if name := os.Getenv(variable); name != "" {
		fatalPrograms[name].run(t)
		t.Fatal("it came to its end")
	}
	if testing.Short() && runtime.GOOS == "js" {
		t.Skip("no processes")
	}
	names := make([]string, 0, len(fatalPrograms))
	for name := range fatalPrograms {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			cmd := itself(ctx, "-test.run=^TestWakeIntoABubble$", "-test.count=1")
			cmd.Env = append(os.Environ(), variable+"="+name)
			out, err := cmd.CombinedOutput()
			want := fatalPrograms[name].sentence
			if s := string(out); err == nil || !strings.Contains(s, want) || strings.Contains(s, "fatal error") {
				t.Errorf("%v, want %q:\n%s", err, want, out)
			}
		})
	}
}
