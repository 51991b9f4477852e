package buf_test

// The properties that involve several fibers, each tested under schedules of package sim.

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/buf"
	"github.com/coir-go/coir/desk"
	"github.com/coir-go/coir/sim"
)

func dpor(uint64) sim.Strategy { return sim.DPOR() }

// complete explores fn in all orders that make a difference, and fails the test if there are too many.
func complete(t *testing.T, fn func(ctx context.Context, s *sim.Sim)) {
	t.Helper()
	res := sim.Explore(fn, sim.WithStrategy(dpor), sim.WithSchedules(100_000))
	if res.Failure != nil {
		t.Fatal(res.Failure)
	}
	if !res.Complete || len(res.Never) > 0 {
		t.Errorf("%d schedules, complete: %v; never so: %q", res.Schedules, res.Complete, res.Never)
	}
	t.Logf("%d schedules", res.Schedules)
}

// inSim returns a pool of one buffer, in a region that is checked because it is in a simulation, and a function that
// closes the region and reports leaks.
func inSim(s *sim.Sim) (*buf.Pool, func()) {
	r, err := buf.NewRegion(64)
	if err != nil || !strings.Contains(r.String(), "checked") {
		s.Errorf("%v, %v", r, err)
	}
	p, err := buf.NewPool(r, 64, 1, coir.WithName("frames"))
	if err != nil {
		s.Errorf("%v", err)
	}
	return p, func() {
		if err := r.Close(); err != nil {
			s.Errorf("%v", err)
		}
	}
}

// run runs body in a nursery, and ignores the errors of its fibers, because some of them are cancelled.
func run(ctx context.Context, body func(ctx context.Context, n *coir.Nursery)) {
	_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		body(ctx, n)
		return nil
	})
}

// A buffer is sent while the sender is cancelled, the channel is aborted, and a receiver may or may not come. In all
// orders the buffer has one owner and is returned.
//
// Spec: BU-01 (a buffer has one owner)
// Spec: BU-02 (a failed send keeps its buffer)
// Spec: BU-10 (undelivered buffers go back)
func TestSendAgainstCancelAndAbort(t *testing.T) {
	for _, capacity := range []int{0, 1} {
		complete(t, func(ctx context.Context, s *sim.Sim) {
			p, end := inSim(s)
			c := buf.NewChan(capacity, coir.WithName("c"))
			run(ctx, func(ctx context.Context, n *coir.Nursery) {
				in, cancel := coir.WithCancel(ctx)
				n.Go("sender", func(context.Context) error {
					b, err := p.TryGet()
					if err != nil {
						return err
					}
					err = c.Send(in, b)
					s.Sometimes(err == nil, "it is sent")
					s.Sometimes(errors.Is(err, context.Canceled), "the send is cancelled")
					s.Sometimes(errors.Is(err, coir.ErrClosed), "the channel is aborted first")
					if err != nil {
						b.Release()
					} else if panicOf(b.Release) == "" {
						s.Errorf("the sender has released what it has sent")
					}
					return nil
				})
				n.Go("receiver", func(ctx context.Context) error {
					b, err := c.Recv(ctx)
					if err == nil {
						b.Bytes()
						b.Release()
					}
					return nil
				})
				n.Go("canceller", func(context.Context) error { cancel(); return nil })
				n.Go("aborter", func(context.Context) error { c.Abort(nil); return nil })
			})
			st := p.Stats()
			if st.Lent != 0 || st.Moved+st.Cancelled != 1 || st.Aborted > st.Moved {
				s.Errorf("p.Stats() = %+v, want Lent 0, Moved + Cancelled = 1, Aborted <= Moved", st)
			}
			end()
		})
	}
}

// Callers wait for a buffer with Get, in a select, and with a deadline, and one is cancelled. Each buffer goes to one
// of them, and all are returned.
//
// Spec: BU-09 (a pool makes, resets and lends buffers)
func TestPoolWaits(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		p, end := inSim(s)
		quit := coir.NewEvent()
		use := func(ctx context.Context, b buf.Buf) {
			if held := p.Stats().Lent; held != 1 {
				s.Errorf("%d are lent", held)
			}
			_ = coir.Yield(ctx)
			b.Release()
		}
		run(ctx, func(ctx context.Context, n *coir.Nursery) {
			in, cancel := coir.WithCancel(ctx)
			n.Go("get", func(ctx context.Context) error {
				b, err := p.Get(ctx)
				if err != nil {
					s.Errorf("%v", err)
					return err
				}
				use(ctx, b)
				return nil
			})
			n.Go("cancelled", func(ctx context.Context) error {
				b, err := p.Get(in)
				s.Sometimes(err != nil, "a get is cancelled")
				if err == nil {
					use(ctx, b)
				}
				return nil
			})
			n.Go("deadline", func(ctx context.Context) error {
				b, err := p.GetTimeout(ctx, time.Second)
				s.Sometimes(errors.Is(err, coir.ErrTimeout), "a get times out")
				if err == nil {
					use(ctx, b)
				}
				return nil
			})
			n.Go("select", func(ctx context.Context) error {
				var b buf.Buf
				i, err := coir.Select(ctx, p.GetCase(&b), quit.DoneCase())
				s.Sometimes(i == 0, "a select gets it")
				s.Sometimes(i == 1, "a select does not")
				if err == nil && i == 0 {
					use(ctx, b)
				}
				return nil
			})
			n.Go("canceller", func(context.Context) error { cancel(); quit.Set(); return nil })
		})
		end()
	}, sim.WithClock(sim.ClockRacing))
}

// A ticket is answered with a buffer while its waiter gives up. In all orders the buffer has one owner: the waiter if
// the answer was in time, otherwise the completer.
//
// Spec: BU-11 (a ticket's payload may be a descriptor)
func TestAnswerAgainstCancel(t *testing.T) {
	complete(t, func(ctx context.Context, s *sim.Sim) {
		p, end := inSim(s)
		d := desk.New[buf.Buf](desk.WithName("d"))
		run(ctx, func(ctx context.Context, n *coir.Nursery) {
			tk, err := d.Open(ctx)
			if err != nil {
				s.Errorf("%v", err)
				return
			}
			n.Go("completer", func(context.Context) error {
				b, err := p.TryGet()
				if err != nil {
					return err
				}
				err = buf.HandOver(b, func(b buf.Buf) error { return d.Resolve(tk.ID(), b) })
				s.Sometimes(err == nil, "in time")
				s.Sometimes(errors.Is(err, desk.ErrLate), "too late")
				if err != nil {
					b.Release()
				}
				return nil
			})
			n.Go("canceller", func(context.Context) error { tk.Cancel(); return nil })
			if b, err := tk.Wait(ctx); err == nil {
				b.Release()
			}
		})
		end()
	})
}

// A simulation finds a program that uses a buffer after it has sent it, with both places, and a program that leaks a
// buffer in only one order.
//
// Spec: BU-05 (use after release is found)
func TestSimulationFindsMisuse(t *testing.T) {
	use := sim.Explore(func(ctx context.Context, s *sim.Sim) {
		p, _ := inSim(s)
		c := buf.NewChan(1)
		b, _ := p.TryGet()
		run(ctx, func(ctx context.Context, n *coir.Nursery) {
			n.Go("sender", func(ctx context.Context) error {
				if err := c.Send(ctx, b); err != nil {
					return err
				}
				b.Bytes()
				return nil
			})
		})
	})
	if use.Failure == nil || strings.Count(use.Failure.Error(), "sim_test.go:") < 3 ||
		!strings.Contains(use.Failure.Error(), "that was handed over at buf/sim_test.go:") {
		t.Errorf("%v", use.Failure)
	}
	leak := sim.Explore(func(ctx context.Context, s *sim.Sim) {
		p, end := inSim(s)
		c := buf.NewChan(1)
		run(ctx, func(ctx context.Context, n *coir.Nursery) {
			n.Go("sender", func(ctx context.Context) error {
				b, _ := p.TryGet()
				return c.Send(ctx, b) // if it fails, b is lost
			})
			n.Go("closer", func(context.Context) error { c.Abort(nil); return nil })
		})
		end()
	})
	const lost = "1 of 1 buffers not released: made at buf/sim_test.go:"
	if leak.Failure == nil || !strings.Contains(leak.Failure.Error(), lost) {
		t.Errorf("%v", leak.Failure)
	}
}
