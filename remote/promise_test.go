package remote_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/internal/simtest"
	"github.com/coir-go/coir/remote/memory"
	"github.com/coir-go/coir/remote/ticket"
	"github.com/coir-go/coir/sim"
)

// One process waits for an order, and another one pays it. A process that starts later reads the result.
func ExamplePromise() {
	broker := memory.New()
	err := coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		n.Go("shop", func(ctx context.Context) error {
			paid, err := remote.NewPromise[int](broker.Node("shop"), "order 4711")
			if err != nil {
				return err
			}
			cents, err := paid.Wait(ctx)
			fmt.Println("the shop:", cents, err)
			return err
		})
		paid, err := remote.NewPromise[int](broker.Node("bank"), "order 4711")
		if err != nil {
			return err
		}
		_, err = paid.Resolve(ctx, 1995) // nil if a result is stored
		return err
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	later, err := remote.NewPromise[int](broker.Node("shop, started again"), "order 4711")
	if err != nil {
		fmt.Println(err)
		return
	}
	won, err := later.Reject(context.Background(), "not paid in time")
	fmt.Println("rejected:", won, err)
	cents, err := later.Wait(context.Background())
	fmt.Println("later:", cents, err)
	// Output:
	// the shop: 1995 <nil>
	// rejected: false <nil>
	// later: 1995 <nil>
}

// A page shows whether an order is paid, and does not wait until it is.
func ExamplePromise_Peek() {
	paid, err := remote.NewPromise[int](memory.New().Node("shop"), "order 4711")
	if err != nil {
		fmt.Println(err)
		return
	}
	show := func() {
		ctx, cancel := coir.WithTimeout(context.Background(), time.Second) // the broker may be away
		defer cancel()
		switch cents, done, err := paid.Peek(ctx); {
		case err != nil:
			fmt.Println(err)
		case !done:
			fmt.Println("not paid yet")
		default:
			fmt.Println("paid:", cents)
		}
	}
	show()
	if _, err := paid.Resolve(context.Background(), 1995); err != nil {
		fmt.Println(err)
		return
	}
	show()
	// Output:
	// not paid yet
	// paid: 1995
}

// Promises need a transport that stores durably, unless WithMeaning accepts less.
func TestPromiseIsRefused(t *testing.T) {
	node := memory.New(memory.WithMeaning(remote.MeaningStored)).Node("a")
	if _, err := remote.NewPromise[int](node, "key"); err == nil {
		t.Error("a promise is durable although the transport is not")
	}
	if _, err := remote.NewPromise[int](node, "key", remote.WithMeaning(remote.MeaningStored)); err != nil {
		t.Error(err)
	}
}

// The error of a rejected promise contains the reason. A result of another type is an error.
func TestPromiseResults(t *testing.T) {
	node := memory.New().Node("a")
	p, _ := remote.NewPromise[string](node, "key")
	if won, err := p.Reject(t.Context(), "no money"); !won || err != nil {
		t.Error(won, err)
	}
	if _, err := p.Wait(t.Context()); !errors.Is(err, remote.ErrRejected) || !contains(err, "no money") {
		t.Error(err)
	}
	if _, done, err := p.Peek(t.Context()); !done || !errors.Is(err, remote.ErrRejected) || !contains(err, "no money") {
		t.Error(done, err)
	}
	q, _ := remote.NewPromise[func()](node, "other")
	if won, err := q.Resolve(t.Context(), nil); won || err == nil {
		t.Error(won, err)
	}
	r, _ := remote.NewPromise[string](node, "third")
	s, _ := remote.NewPromise[int](node, "third")
	if won, err := r.Resolve(t.Context(), "text"); !won || err != nil {
		t.Error(won, err)
	}
	if _, err := s.Wait(t.Context()); err == nil {
		t.Error("a text is a number")
	}
	if _, done, err := s.Peek(t.Context()); !done || err == nil {
		t.Error("a peek reads a text as a number:", done, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := q.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, remote.ErrUnknown) {
		t.Error(err)
	}
}

// The error of a wait that ends while the broker is away says so, and why. After an answer it does not.
func TestAWaitEndsWhileTheBrokerIsAway(t *testing.T) {
	down := new(atomic.Bool)
	failing := leaky{memory.New().Node("a"), down}
	for name, tr := range map[string]remote.Transport{"requests fail": failing, "the connection is lost": sure{failing}} {
		for _, away := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				down.Store(away)
				p, err := remote.NewPromise[int](tr, "nobody")
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := coir.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, err = p.Wait(ctx)
				if !errors.Is(err, coir.ErrTimeout) || errors.Is(err, remote.ErrUnknown) ||
					errors.Is(err, remote.ErrUnavailable) != away || contains(err, "connection refused") != away {
					t.Errorf("%s: the broker is away: %v: %v", name, away, err)
				}
				ctx, cancel = coir.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, done, err := p.Peek(ctx)
				if done || errors.Is(err, coir.ErrTimeout) != away || errors.Is(err, remote.ErrUnknown) ||
					errors.Is(err, remote.ErrUnavailable) != away || contains(err, "connection refused") != away {
					t.Errorf("%s: the broker is away: %v: a peek returns %v, %v", name, away, done, err)
				}
			})
		}
	}
}

// deaf is a transport whose broker does not answer to Serve.
type deaf struct{ remote.Transport }

func (deaf) Serve(ctx context.Context, _ string, _ func(data []byte) []byte) (io.Closer, error) {
	return nil, coir.WaitCancel(ctx)
}

// An operation that waits to become reachable ends with its context, and its error names the operation.
func TestSimServingEndsWithItsContext(t *testing.T) {
	const limit = 2 * time.Second
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		tr := deaf{memory.New().Node("a")}
		_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			for what, wait := range map[string]func(ctx context.Context) error{
				"Durable":  func(ctx context.Context) error { _, err := remote.Durable[int](ctx, n, tr, orders, 1); return err },
				"Volatile": func(ctx context.Context) error { _, err := remote.Volatile[int](ctx, n, tr, orders, 1); return err },
				"Wait": func(ctx context.Context) error {
					p, err := remote.NewPromise[int](tr, orders)
					if err == nil {
						_, err = p.Wait(ctx)
					}
					return err
				},
				"ticket.New": func(ctx context.Context) error {
					keys, err := ticket.NewKeys(1, make([]byte, 32))
					if err == nil {
						_, err = ticket.New[int](ctx, n, tr, orders, keys)
					}
					return err
				},
			} {
				began := s.Now()
				short, cancel := coir.WithTimeout(ctx, limit)
				err := wait(short)
				cancel()
				if took := s.Now() - began; !errors.Is(err, coir.ErrTimeout) || !contains(err, orders) || took != limit {
					s.Errorf("%s returned after %v: %v", what, took, err)
				}
			}
			return nil
		})
	}, sim.WithSchedules(1))
}

// attempts holds the calls of Resolve, and their results. It survives crashes.
type attempts struct {
	mu    sync.Mutex // for the race detector
	calls int
	won   map[int]bool    // by the value
	what  map[int]outcome // the same
	read  []int
}

// resolve is a process that resolves the promise, until it knows the outcome. Each call has a different value.
func (a *attempts) resolve(ctx context.Context, s *sim.Sim, node *memory.Node) error {
	p, err := remote.NewPromise[int](node, orders)
	if err != nil {
		return err
	}
	for coir.Ended(ctx) == nil {
		a.mu.Lock()
		a.calls++
		v := a.calls
		a.mu.Unlock()
		in, cancel := ctx, context.CancelFunc(func() {})
		if s.Fault("short of time") {
			in, cancel = coir.WithTimeout(ctx, [...]time.Duration{time.Millisecond, 300 * time.Millisecond}[s.Intn(2)])
		}
		won, err := p.Resolve(in, v)
		cancel()
		if !node.Alive() {
			return nil
		}
		a.mu.Lock()
		if a.what[v] = outcomeOf(err); err == nil {
			a.won[v] = won
		}
		a.mu.Unlock()
		if err == nil {
			return nil
		}
	}
	return nil
}

// wait is a process that waits for the promise.
func (a *attempts) wait(ctx context.Context, node *memory.Node) error {
	p, err := remote.NewPromise[int](node, orders)
	if err != nil {
		return err
	}
	v, err := p.Wait(ctx)
	if err == nil && node.Alive() {
		a.mu.Lock()
		a.read = append(a.read, v)
		a.mu.Unlock()
	}
	return err
}

// The first completion wins, whatever the network, the processes and the broker do: all processes read the same value,
// now and after a restart. A call that has won has stored its value; a call that has not won, or has failed, has not.
func TestSimPromiseFirstWins(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		b, a := memory.New(), &attempts{won: map[int]bool{}, what: map[int]outcome{}}
		_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			for i := range 2 {
				n.Go("waiter", func(ctx context.Context) error {
					return b.Run(ctx, "waiter "+strconv.Itoa(i), a.wait)
				}, coir.WithIndex(i))
				n.Go("resolver", func(ctx context.Context) error {
					return b.Run(ctx, "resolver "+strconv.Itoa(i), func(ctx context.Context, node *memory.Node) error {
						return a.resolve(ctx, s, node)
					})
				}, coir.WithIndex(i))
			}
			return nil
		})
		if err := a.wait(ctx, b.Node("later")); err != nil || len(a.read) != 3 {
			s.Errorf("%d waits have returned, %v", len(a.read), err)
			return
		}
		result := a.read[2]
		if a.read[0] != result || a.read[1] != result {
			s.Errorf("the waits have returned %v", a.read)
		}
		for v, o := range a.what {
			switch {
			case o == stored && a.won[v] != (v == result):
				s.Errorf("a call says %v", a.won[v])
			case o == failed && v == result:
				s.Errorf("a call that failed has won")
			}
		}
		s.Sometimes(a.what[result] == unknown, "an outcome is unknown, and it is the result")
		s.Sometimes(len(a.won) == 2 && a.what[result] == stored, "one of two wins")
		if s.Now() > time.Hour {
			s.Errorf("it took %v", s.Now())
		}
	}, simtest.Schedules(2000), sim.WithFaults("short of time", "remote lose", "remote duplicate", "remote delay",
		"remote refuse", "remote partition", "remote crash", "remote restart"))
}

// Without faults, a wait ends when the promise is completed, and not at its next poll.
func TestSimPromiseIsPrompt(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		b, a := memory.New(), &attempts{won: map[int]bool{}, what: map[int]outcome{}}
		err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			n.Go("waiter", func(ctx context.Context) error { return a.wait(ctx, b.Node("waiter")) })
			n.Go("resolver", func(ctx context.Context) error { return a.resolve(ctx, s, b.Node("resolver")) })
			return nil
		})
		if err != nil || len(a.read) != 1 || s.Now() > 0 {
			s.Errorf("%v in %v, %v", a.read, s.Now(), err)
		}
	}, simtest.Schedules(1000))
}

// A peek finds the result if a call that completes the promise has returned, and what it finds does not change,
// whatever the network and the broker do.
func TestSimPeekFindsWhatIsStored(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		b := memory.New()
		var resolved atomic.Bool
		open := 0
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			n.Go("looker", func(ctx context.Context) error {
				p, err := remote.NewPromise[int](b.Node("looker"), orders)
				if err != nil {
					return err
				}
				for {
					before := resolved.Load()
					v, done, err := p.Peek(ctx)
					switch {
					case err != nil:
						return err
					case done && v != 7:
						return fmt.Errorf("a peek found %d", v)
					case done:
						return nil
					case before:
						return errors.New("a peek missed a result that was stored before")
					}
					open++
					if err := coir.Sleep(ctx, 100*time.Millisecond); err != nil {
						return err
					}
				}
			})
			p, err := remote.NewPromise[int](b.Node("resolver"), orders)
			if err != nil {
				return err
			}
			won, err := p.Resolve(ctx, 7)
			resolved.Store(true)
			if err == nil && !won {
				err = errors.New("the only call has not won")
			}
			return err
		})
		if err != nil {
			s.Errorf("%v", err)
		}
		s.Sometimes(open == 0, "the first peek finds the result")
		s.Sometimes(open > 1, "peeks find nothing")
	}, simtest.Schedules(2000), sim.WithFaults("remote lose", "remote duplicate", "remote delay", "remote refuse",
		"remote partition", "remote restart"))
}

// If nothing can complete a promise, the wait for it is a deadlock, though it polls.
func TestSimAPromiseThatStaysOpenIsADeadlock(t *testing.T) {
	result := sim.Explore(func(ctx context.Context, _ *sim.Sim) {
		_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			p, err := remote.NewPromise[int](memory.New().Node("waiter"), "order 4711")
			if err == nil {
				_, err = p.Wait(ctx)
			}
			return err
		})
	}, sim.WithSchedules(10))
	f := result.Failure
	if f == nil || f.Kind != sim.KindDeadlock || !contains(f, "result of order 4711") {
		t.Errorf("a wait for a promise that nobody completes: %v", f)
	}
}

func contains(err error, text string) bool {
	return err != nil && strings.Contains(err.Error(), text)
}
