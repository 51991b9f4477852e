package desk_test

// The five classic leaks of a table of pending requests. Each is a program that runs under package sim with a client.
// The client on a desk passes in all schedules. The usual client, on a map, fails in some; this file keeps it for
// comparison.

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/desk"
	"github.com/coir-go/coir/locks"
	"github.com/coir-go/coir/sim"
)

// client makes requests and receives the replies.
type client interface {
	// call sends a request, and waits for its reply.
	call(ctx context.Context, send func(id any) error) (int, error)
	// reply is called for each reply that arrives.
	reply(id any, v int)
	// lost is called when the connection is lost.
	lost()
	// pending returns the number of requests in the client's table.
	pending() int
	// seen returns the number of replies that the client has passed on or counted.
	seen() int
}

// onDesk is a client that uses a desk.
type onDesk struct{ d *desk.Desk[int] }

func (c onDesk) call(ctx context.Context, send func(id any) error) (int, error) {
	t, err := c.d.Open(ctx)
	if err != nil {
		return 0, err
	}
	defer t.Cancel()
	if err := send(t.ID()); err != nil {
		return 0, err
	}
	return t.Wait(ctx)
}

func (c onDesk) reply(id any, v int) { _ = c.d.Resolve(id.(desk.ID), v) }

func (c onDesk) lost() { c.d.FailAll(errLost) }

func (c onDesk) pending() int { return c.d.Len() }

func (c onDesk) seen() int {
	s := c.d.Stats()
	return int(s.Resolved + s.Late + s.Duplicate + s.Unknown)
}

// onMap is the client that most programs have: a map of channels with a mutex.
type onMap struct {
	registersLate bool // registers the request after it has sent it
	cleansUp      bool // removes the entry when a call ends: an improved client

	mu      *locks.Mutex
	last    int
	waiting map[int]*coir.Chan[int]
	passed  int
}

func (c *onMap) lock() func() {
	if err := c.mu.Lock(context.Background()); err != nil {
		panic(err)
	}
	return c.mu.Unlock
}

func (c *onMap) newID() int {
	defer c.lock()()
	c.last++
	return c.last
}

func (c *onMap) register(id int, ch *coir.Chan[int]) {
	defer c.lock()()
	c.waiting[id] = ch
}

func (c *onMap) call(ctx context.Context, send func(id any) error) (int, error) {
	id, ch := c.newID(), coir.NewChan[int](1, coir.WithName("reply"))
	if !c.registersLate {
		c.register(id, ch)
	}
	if c.cleansUp {
		defer func() {
			defer c.lock()()
			delete(c.waiting, id)
		}()
	}
	if err := send(id); err != nil {
		return 0, err // the entry stays
	}
	if c.registersLate {
		c.register(id, ch) // the reply may have arrived already
	}
	return ch.Recv(ctx) // if ctx ends, the entry stays
}

func (c *onMap) reply(id any, v int) {
	defer c.lock()()
	if ch := c.waiting[id.(int)]; ch != nil {
		delete(c.waiting, id.(int))
		_ = ch.TrySend(v)
		c.passed++
	} // otherwise the reply is dropped without a trace
}

func (c *onMap) lost() {} // the callers continue to wait

func (c *onMap) pending() int { return len(c.waiting) }

func (c *onMap) seen() int { return c.passed }

// leak is a program in which a client may leak.
type leak struct {
	name    string
	usual   onMap    // the client whose leak sim finds
	kind    sim.Kind // the kind of the failure
	program func(ctx context.Context, s *sim.Sim, c client)
}

// serve makes calls with a client, one after another, to a server that takes a random time for each reply. It returns
// the number of replies.
func serve(ctx context.Context, s *sim.Sim, c client, calls int, limit, slowest time.Duration) (replies int) {
	requests := coir.NewChan[any](coir.Unbounded, coir.WithName("requests"))
	err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		n.Go("server", func(ctx context.Context) error {
			for id, err := range requests.All(ctx) {
				if err != nil {
					return err
				}
				if err := coir.Sleep(ctx, coir.Jitter(ctx, slowest)); err != nil {
					return err
				}
				replies++
				c.reply(id, 1)
			}
			return nil
		})
		n.Go("caller", func(ctx context.Context) error {
			defer requests.Close()
			for range calls {
				in, cancel := coir.WithTimeout(ctx, limit)
				_, err := c.call(in, func(id any) error { return requests.Send(in, id) })
				cancel()
				s.Sometimes(err == nil, "a reply in time")
				if err != nil && !errors.Is(err, coir.ErrTimeout) {
					return err
				}
			}
			return nil
		})
		return nil
	})
	if err != nil {
		s.Errorf("%v", err)
	}
	return replies
}

var leaks = []leak{
	{
		name: "kept on timeout", kind: sim.KindError,
		program: func(ctx context.Context, s *sim.Sim, c client) {
			requests := coir.NewChan[any](coir.Unbounded)
			in, cancel := coir.WithTimeout(ctx, time.Second)
			defer cancel()
			err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
				n.Go("server", func(ctx context.Context) error {
					id, err := requests.Recv(ctx)
					if err != nil || coir.Jitter(ctx, 4) > 0 { // the server may have lost the request
						return err
					}
					c.reply(id, 1)
					return nil
				})
				_, err := c.call(in, func(id any) error { return requests.Send(in, id) })
				s.Sometimes(errors.Is(err, coir.ErrTimeout), "a timeout")
				return nil
			})
			if err != nil || c.pending() != 0 {
				s.Errorf("%v, %d requests are pending", err, c.pending())
			}
		},
	},
	{
		name: "kept on send error", kind: sim.KindError,
		program: func(ctx context.Context, s *sim.Sim, c client) {
			requests := coir.NewChan[any](1, coir.WithOverflow(coir.OverflowFail))
			err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
				for i := range 2 {
					n.Go("caller", func(ctx context.Context) error {
						_, err := c.call(ctx, func(id any) error { return requests.Send(ctx, id) })
						s.Sometimes(errors.Is(err, coir.ErrWouldBlock), "the request cannot be sent")
						return nil
					}, coir.WithIndex(i))
				}
				n.Go("server", func(ctx context.Context) error {
					for range 2 {
						in, cancel := coir.WithTimeout(ctx, time.Second)
						if id, err := requests.Recv(in); err == nil {
							c.reply(id, 1)
						}
						cancel()
					}
					return nil
				})
				return nil
			})
			if err != nil || c.pending() != 0 {
				s.Errorf("%v, %d requests are pending", err, c.pending())
			}
		},
	},
	{
		name: "kept on disconnect", kind: sim.KindDeadlock,
		program: func(ctx context.Context, s *sim.Sim, c client) {
			requests := coir.NewChan[any](1)
			err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
				n.Go("reader", func(ctx context.Context) error {
					id, err := requests.Recv(ctx)
					if err != nil {
						return err
					}
					if coir.Jitter(ctx, 4) == 0 {
						c.reply(id, 1)
					} else {
						c.lost()
					}
					return nil
				})
				_, err := c.call(ctx, func(id any) error { return requests.Send(ctx, id) })
				s.Sometimes(errors.Is(err, errLost), "the connection is lost")
				return nil
			})
			if err != nil || c.pending() != 0 {
				s.Errorf("%v, %d requests are pending", err, c.pending())
			}
		},
	},
	{
		name: "registered after the reply", usual: onMap{registersLate: true}, kind: sim.KindDeadlock,
		program: func(ctx context.Context, s *sim.Sim, c client) {
			requests := coir.NewChan[any](1)
			err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
				n.Go("server", func(ctx context.Context) error {
					id, err := requests.Recv(ctx)
					if err != nil {
						return err
					}
					c.reply(id, 1)
					return nil
				})
				v, err := c.call(ctx, func(id any) error { return requests.Send(ctx, id) })
				if v != 1 {
					s.Errorf("%d, %v", v, err)
				}
				return err
			})
			if err != nil || c.pending() != 0 {
				s.Errorf("%v, %d requests are pending", err, c.pending())
			}
		},
	},
	{
		name: "late reply uncounted", usual: onMap{cleansUp: true}, kind: sim.KindError,
		program: func(ctx context.Context, s *sim.Sim, c client) {
			replies := serve(ctx, s, c, 2, time.Second, 4*time.Second)
			s.Sometimes(c.seen() == 2 && replies == 2, "two replies")
			if c.seen() != replies {
				s.Errorf("%d replies have come, and %d were seen", replies, c.seen())
			}
		},
	},
}

func TestDeskHasNoneOfTheLeaks(t *testing.T) {
	for _, l := range leaks {
		t.Run(l.name, func(t *testing.T) {
			explore(t, func(ctx context.Context, s *sim.Sim) {
				l.program(ctx, s, onDesk{desk.New[int](desk.WithName("replies"))})
			})
		})
	}
}

func TestMapHasTheLeaks(t *testing.T) {
	for _, l := range leaks {
		t.Run(l.name, func(t *testing.T) {
			res := sim.Explore(func(ctx context.Context, s *sim.Sim) {
				c := l.usual
				c.mu, c.waiting = locks.NewMutex(coir.WithName("table")), make(map[int]*coir.Chan[int])
				l.program(ctx, s, &c)
			}, sim.WithSchedules(2_500))
			if res.Failure == nil {
				t.Fatalf("sim has not found the leak in %d schedules", res.Schedules)
			}
			if res.Failure.Kind != l.kind {
				t.Errorf("a %v, want a %v:\n%v", res.Failure.Kind, l.kind, res.Failure)
			}
			t.Logf("found in schedule %d", res.Schedules)
		})
	}
}
