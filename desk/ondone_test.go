package desk_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/desk"
	"github.com/coir-go/coir/sim"
)

// A function of OnDone that calls Goexit does not stop the clock or a cancellation: the other functions are called, the
// other tickets end, and timers still fire.
//
// Spec: TK-13 (a ticket ends with its scope)
// Spec: TK-20 (OnDone runs once)
func TestGoexitInOnDone(t *testing.T) {
	for name, end := range map[string]func(ctx context.Context) (in context.Context, limit time.Duration, end func()){
		"clock": func(ctx context.Context) (context.Context, time.Duration, func()) {
			return ctx, time.Second, func() { time.Sleep(2 * time.Second) }
		},
		"cancel of a scope": func(ctx context.Context) (context.Context, time.Duration, func()) {
			in, cancel := coir.WithCancel(ctx)
			return in, time.Hour, cancel
		},
		"deadline of a scope": func(ctx context.Context) (context.Context, time.Duration, func()) {
			in, _ := coir.WithTimeout(ctx, time.Second)
			return in, time.Hour, func() { time.Sleep(2 * time.Second) }
		},
		"cancel of package context": func(ctx context.Context) (context.Context, time.Duration, func()) {
			in, cancel := context.WithCancel(ctx)
			return in, time.Hour, cancel
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := desk.New[int](desk.WithName("replies"))
				ctx, limit, end := end(t.Context())
				var called [3]int
				var nested atomic.Int32 // incremented by unordered goroutines
				for i := range called {
					tk, err := d.OpenTimeout(ctx, limit)
					if err != nil {
						t.Fatal(err)
					}
					tk.OnDone(func(int, error) { runtime.Goexit() })
					tk.OnDone(func(int, error) {
						called[i]++
						tk.OnDone(func(int, error) { nested.Add(1); runtime.Goexit() })
						runtime.Goexit()
					})
				}
				end()
				synctest.Wait()
				if called != [3]int{1, 1, 1} || nested.Load() != 3 || d.Len() != 0 {
					t.Errorf("called %v, and %d in them; %d open", called, nested.Load(), d.Len())
				}
				tk, err := d.OpenTimeout(t.Context(), time.Second)
				if err != nil {
					t.Fatal(err)
				}
				_, _ = tk.Wait(context.Background())
				checkEnd(t, tk, 0, coir.ErrTimeout)
				run(t, func(ctx context.Context, _ *coir.Nursery) error { return coir.Sleep(ctx, time.Second) })
			})
		})
	}
}

// The same under package sim, where such a function runs within the step that ends the ticket.
func TestGoexitInOnDoneUnderSim(t *testing.T) {
	for name, cancelAfter := range map[string]time.Duration{"cancel": time.Second / 2, "clock": 2 * time.Second} {
		t.Run(name, func(t *testing.T) {
			explore(t, func(ctx context.Context, s *sim.Sim) {
				d := desk.New[int](desk.WithName("replies"))
				c := coir.NewChan[int](2)
				err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
					in, cancel := coir.WithCancel(ctx)
					for range 2 {
						tk, err := d.OpenTimeout(in, time.Second)
						if err != nil {
							return err
						}
						tk.OnDone(func(int, error) {
							if err := c.TrySend(1); err != nil {
								s.Errorf("%v", err)
							}
							runtime.Goexit()
						})
					}
					n.Go("canceller", func(ctx context.Context) error {
						defer cancel()
						return coir.Sleep(ctx, cancelAfter)
					})
					for range 2 {
						if _, err := c.Recv(ctx); err != nil {
							return err
						}
					}
					return coir.Sleep(ctx, time.Second)
				})
				if st := d.Stats(); err != nil || st.Open != 0 {
					s.Errorf("%v, %+v", err, st)
				}
			})
		})
	}
}

// After the ticket has ended, in any way, OnDone calls the function itself, and a panic continues in its caller.
func TestPanicInOnDoneAfterTheEnd(t *testing.T) {
	ctx, cancel := coir.WithCancel(t.Context())
	d := desk.New[int](desk.WithName("replies"))
	tk := open(t, ctx, d)
	cancel()
	if _, err := tk.Wait(context.Background()); err == nil {
		t.Error("it has not ended with its context")
	}
	defer func() {
		if r := recover(); r != "mine" {
			t.Errorf("the panic that came was %v", r)
		}
	}()
	tk.OnDone(func(int, error) { panic("mine") })
}

// FailAll ends all tickets even if functions of OnDone panic or call Goexit. The first panic continues.
func TestFailAllEndsAllDespitePanics(t *testing.T) {
	for name, leave := range map[string]func(i int){
		"panic":  func(i int) { panic(i) },
		"Goexit": func(int) { runtime.Goexit() },
		"both": func(i int) {
			if i%2 == 1 {
				runtime.Goexit()
			}
			panic(i)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := desk.New[int](desk.WithName("replies"))
			var order []int
			for i := range 1000 {
				open(t, t.Context(), d).OnDone(func(int, error) {
					order = append(order, i)
					if i%3 != 0 {
						leave(i)
					}
				})
			}
			var came any
			done := make(chan struct{})
			go func() {
				defer close(done)
				defer func() { came = recover() }()
				d.FailAll(errLost)
				t.Error("FailAll has returned")
			}()
			<-done
			if d.Len() != 0 || len(order) != 1000 || d.Stats().Failed != 1000 {
				t.Errorf("%d open, %d functions called, %+v", d.Len(), len(order), d.Stats())
			}
			if name == "panic" && came != 1 {
				t.Errorf("the panic that came is %v", came)
			}
		})
	}
}
