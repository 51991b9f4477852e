package remote_test

// Tests of the protocol under schedules of package sim. Senders, receivers and the broker are parts of one program, and
// the schedule decides how the network behaves and when they crash. A program says what must hold in all schedules, and
// with Sometimes what must happen in some. Package internal/mutants plants mistakes that these tests must find.

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/internal/simtest"
	"github.com/coir-go/coir/remote/memory"
	"github.com/coir-go/coir/sim"
)

const orders = "orders"

// body is the code of a process.
type body func(ctx context.Context, node *memory.Node, c *remote.Chan[int]) error

// process runs f as a process with an end of the channel orders. It starts again when it crashes.
func process(ctx context.Context, b *memory.Broker, name string, capacity int, f body, opts ...remote.Option) error {
	return b.Run(ctx, name, func(ctx context.Context, node *memory.Node) error {
		return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			c, err := remote.Durable[int](ctx, n, node, orders, capacity, opts...)
			if err != nil {
				return err
			}
			defer c.Leave()
			return f(ctx, node, c)
		})
	})
}

// outcome is what a sender knows about a value.
type outcome int

const (
	unknown outcome = iota // Send has returned ErrUnknown, or has not returned
	stored                 // Send has returned nil
	failed                 // Send has returned another error
)

// ledger holds what the senders know and the effects of the receivers. It survives crashes, like a database.
type ledger struct {
	mu       sync.Mutex // never held while a fiber waits
	next     map[int]int
	outcomes map[int]outcome
	marks    map[remote.ID]bool
	effects  map[int]int
	first    map[remote.ID]bool // values that were delivered for the first time
}

func newLedger() *ledger {
	return &ledger{
		next: map[int]int{}, outcomes: map[int]outcome{}, marks: map[remote.ID]bool{}, effects: map[int]int{},
		first: map[remote.ID]bool{},
	}
}

// takeOf returns the next value of a sender.
func (l *ledger) takeOf(sender, values int) (v int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next[sender] == values {
		return 0, false
	}
	v = sender*100 + l.next[sender]
	l.next[sender]++
	l.outcomes[v] = unknown
	return v, true
}

func (l *ledger) sent(v int, o outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outcomes[v] = o
}

// commit performs the effect of a value and marks its ID, in one transaction, unless the ID is marked.
func (l *ledger) commit(id remote.ID, v int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.marks[id] {
		l.marks[id] = true
		l.effects[v]++
	}
}

// firstOf reports whether this is the first call for a value.
func (l *ledger) firstOf(id remote.ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.first[id]
	l.first[id] = true
	return !was
}

// check reports mistakes: a stored value without an effect, a failed value with an effect, and a value with two
// effects.
func (l *ledger) check(s *sim.Sim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for v, o := range l.outcomes {
		switch n := l.effects[v]; {
		case n > 1:
			s.Errorf("%d effects of a value", n)
		case o == stored && n == 0:
			s.Errorf("a stored value is lost")
		case o == failed && n > 0:
			s.Errorf("a value whose Send failed has an effect")
		}
	}
}

// outcomeOf returns the outcome that an error of Send implies.
func outcomeOf(err error) outcome {
	switch {
	case err == nil:
		return stored
	case errors.Is(err, remote.ErrUnknown):
		return unknown
	}
	return failed
}

// sendAll is a sending process. It sends the values of the ledger, some of them with a short time limit.
func sendAll(s *sim.Sim, l *ledger, sender, values int) body {
	return func(ctx context.Context, node *memory.Node, c *remote.Chan[int]) error {
		for {
			v, ok := l.takeOf(sender, values)
			if !ok {
				return nil
			}
			limit := time.Hour
			if s.Fault("short of time") {
				limit = [...]time.Duration{time.Millisecond, 300 * time.Millisecond, 2 * time.Second}[s.Intn(3)]
			}
			in, cancel := coir.WithTimeout(ctx, limit)
			err := c.Send(in, v)
			cancel()
			if node.Alive() {
				l.sent(v, outcomeOf(err))
			}
			if coir.Ended(ctx) != nil {
				return nil
			}
		}
	}
}

// receiveAll is a receiving process. Until the channel is closed, it performs the effects of values, which take some
// time.
func receiveAll(s *sim.Sim, l *ledger, takes time.Duration) body {
	return func(ctx context.Context, node *memory.Node, c *remote.Chan[int]) error {
		for {
			err := c.RecvTx(ctx, func(ctx context.Context, it *remote.Item[int]) error {
				if s.Fault("effect fails") {
					return errors.New("the effect fails")
				}
				if it.Tries == 1 && !l.firstOf(it.ID) {
					s.Errorf("a value was stored twice")
				}
				if takes > 0 && coir.Sleep(ctx, takes) != nil {
					return errors.New("the process ends")
				}
				if node.Alive() {
					l.commit(it.ID, it.Value)
				}
				return nil
			})
			if errors.Is(err, coir.ErrClosed) || coir.Ended(ctx) != nil {
				return nil
			}
		}
	}
}

// exchange runs senders and receivers until all values are sent and received.
func exchange(ctx context.Context, s *sim.Sim, b *memory.Broker, l *ledger, senders, values, receivers, capacity int,
	takes time.Duration, opts ...remote.Option,
) {
	opts = append([]remote.Option{remote.WithTries(1000), remote.WithPrefetch(2)}, opts...)
	_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		for i := range receivers {
			n.Go("receiver", func(ctx context.Context) error {
				return process(ctx, b, "receiver "+strconv.Itoa(i), capacity, receiveAll(s, l, takes), opts...)
			}, coir.WithIndex(i))
		}
		err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			for i := range senders {
				n.Go("sender", func(ctx context.Context) error {
					return process(ctx, b, "sender "+strconv.Itoa(i), capacity, sendAll(s, l, i, values), opts...)
				}, coir.WithIndex(i))
			}
			return nil
		})
		if err != nil {
			return err
		}
		return process(ctx, b, "closer", capacity, func(ctx context.Context, _ *memory.Node, c *remote.Chan[int]) error {
			return c.Close(ctx)
		}, opts...)
	})
	if b.Len(orders) != 0 {
		s.Errorf("%d values are left in the channel", b.Len(orders))
	}
}

// Every value whose Send returned nil has its effect once, and a value whose Send failed has none, whatever the
// network, the processes and the broker do.
func TestSimEffectsHappenOnce(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		b, l := memory.New(), newLedger()
		exchange(ctx, s, b, l, 2, 2, 2, 2, 0)
		l.check(s)
		for _, o := range []outcome{unknown, stored, failed} {
			seen := false
			for _, x := range l.outcomes {
				seen = seen || x == o
			}
			s.Sometimes(seen, [...]string{"an outcome is unknown", "a value is stored", "a send fails"}[o])
		}
	}, simtest.Schedules(5000), sim.WithFaults(append(memory.Faults(), "short of time", "effect fails")...))
}

// The same with a channel that fails when it is full: a failed Send has not sent its value.
func TestSimFullFails(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		b, l := memory.New(), newLedger()
		exchange(ctx, s, b, l, 2, 3, 1, 1, 600*time.Millisecond, remote.WithOverflow(coir.OverflowFail))
		l.check(s)
	}, simtest.Schedules(5000), sim.WithFaults("remote lose", "remote delay", "remote duplicate"))
}

// pollMin is the time after which the first waiting sender tries without credit.
const pollMin = 50 * time.Millisecond

// Without faults, a sender waits for room and not for its poll: credit comes when the removal is stored, and no time
// passes, however often the channel is full.
func TestSimCreditIsPrompt(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		b, l := memory.New(), newLedger()
		exchange(ctx, s, b, l, 1, 4, 1, 1, 0)
		l.check(s)
		if s.Now() != 0 {
			s.Errorf("it took %v: the sender has waited although there was room", s.Now())
		}
	}, simtest.Schedules(3000))
}

// The same with two senders. One may take the room for which the other has credit; the other then waits for room.
func TestSimCreditOfTwoIsPrompt(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		b, l := memory.New(), newLedger()
		exchange(ctx, s, b, l, 2, 3, 1, 1, 0)
		l.check(s)
		if s.Now() >= pollMin {
			s.Errorf("it took %v: a sender has waited although there was room", s.Now())
		}
	}, simtest.Schedules(3000))
}

// Room may come some milliseconds after the removal is stored. A sender that has credit tries again soon.
func TestSimLateRoom(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		b, l := memory.New(memory.WithFaults(3)), newLedger()
		exchange(ctx, s, b, l, 1, 4, 1, 1, 0)
		l.check(s)
		s.Sometimes(s.Now() > 0 && s.Now() < pollMin, "a sender tries again before its poll")
	}, simtest.Schedules(1000), sim.WithFaults("remote late room"))
}

// Messages about room may be lost. A waiting sender continues nevertheless.
func TestSimLostCredit(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		b, l := memory.New(), newLedger()
		exchange(ctx, s, b, l, 1, 3, 1, 1, 0)
		l.check(s)
	}, simtest.Schedules(2000), sim.WithSteps(3000), sim.WithFaults("remote lose"))
}

// Sends of one end wait in one line. The credit of a send that gives up goes to the next. If a removal made room before
// the sends came, all of them use that room: none waits for its poll.
func TestSimOneLineIsServed(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		b := memory.New()
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			n.Go("receiver", func(ctx context.Context) error {
				return process(ctx, b, "receiver", 2, func(ctx context.Context, _ *memory.Node, c *remote.Chan[int]) error {
					for it, err := range c.All(ctx) {
						if err != nil {
							return err
						}
						if err := it.Ack(ctx); err != nil {
							return err
						}
					}
					return nil
				})
			})
			return process(ctx, b, "sender", 2, func(ctx context.Context, _ *memory.Node, c *remote.Chan[int]) error {
				err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
					for i := range 5 {
						in, cancel := coir.WithCancel(ctx)
						n.Go("sender", func(context.Context) error {
							defer cancel()
							if err := c.Send(in, i); err != nil && i != 2 {
								return err
							}
							return nil
						}, coir.WithIndex(i))
						if i == 2 {
							n.Go("canceller", func(context.Context) error { cancel(); return nil })
						}
					}
					return nil
				})
				if err != nil {
					return err
				}
				st := c.Stats()
				s.Sometimes(st.Sent == 4 && st.Credits > 0, "a waiting send gives up")
				return c.Close(ctx)
			})
		})
		if err != nil || s.Now() >= pollMin {
			s.Errorf("it took %v, %v", s.Now(), err)
		}
	}, simtest.Schedules(20_000))
}

// The broker remembers an ID for a limited time. A Send whose outcome is not known gives up before that time has
// passed, so that a value is not stored twice.
func TestSimNoAttemptAfterTheWindow(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		b, l := memory.New(memory.WithWindow(30*time.Second)), newLedger()
		exchange(ctx, s, b, l, 1, 2, 2, 4, 0)
		l.check(s)
	}, simtest.Schedules(3000), sim.WithFaults("remote lose", "remote partition"))
}

// With one receiver, the first deliveries of a sender's values are in the order in which it sent them.
func TestSimOrderOfASender(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		b, last := memory.New(), -1
		_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			n.Go("sender", func(ctx context.Context) error {
				return process(ctx, b, "sender", 2, func(ctx context.Context, _ *memory.Node, c *remote.Chan[int]) error {
					for v := range 4 {
						if err := c.Send(ctx, v); err != nil {
							return err
						}
					}
					return c.Close(ctx)
				})
			})
			return process(ctx, b, "receiver", 2, func(ctx context.Context, _ *memory.Node, c *remote.Chan[int]) error {
				for it, err := range c.All(ctx) {
					if err != nil {
						return err
					}
					if it.Tries == 1 {
						if it.Value <= last {
							s.Errorf("%d comes after %d", it.Value, last)
						}
						last = it.Value
					}
					if err := it.Ack(ctx); err != nil {
						return err
					}
				}
				return nil
			}, remote.WithPrefetch(2))
		})
		s.Sometimes(last == 3, "all values come")
	}, simtest.Schedules(3000), sim.WithFaults("remote lose", "remote duplicate", "remote delay", "remote refuse"))
}

// The lease of a value is renewed for as long as the fiber that holds the value lives. So are the leases of the values
// that wait for the same fiber. No other receiver gets them.
func TestSimAHeldValueIsGivenToNoOther(t *testing.T) {
	const values = 3
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		var got [values]atomic.Int32
		b := memory.New()
		receive := func(ctx context.Context, _ *memory.Node, c *remote.Chan[int]) error {
			for it, err := range c.All(ctx) {
				if err != nil {
					return err
				}
				if got[it.Value].Add(1) > 1 || it.Tries > 1 {
					s.Errorf("the value %d came %d times, and was delivered %d times", it.Value, got[it.Value].Load(), it.Tries)
				}
				if err := coir.Sleep(ctx, 100*time.Second); err != nil {
					return err
				}
				if err := it.Ack(ctx); err != nil {
					return err
				}
			}
			return nil
		}
		_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			for i := range 2 {
				n.Go("receiver", func(ctx context.Context) error {
					return process(ctx, b, "receiver "+strconv.Itoa(i), values, receive)
				}, coir.WithIndex(i))
			}
			return process(ctx, b, "sender", values, func(ctx context.Context, _ *memory.Node, c *remote.Chan[int]) error {
				for i := range values {
					if err := c.Send(ctx, i); err != nil {
						return err
					}
				}
				return c.Close(ctx)
			})
		})
		for i := range got {
			if got[i].Load() != 1 {
				s.Errorf("the value %d came %d times", i, got[i].Load())
			}
		}
	}, simtest.Schedules(300))
}

// An end that no longer receives keeps no value from other ends.
func TestSimAnEndThatDoesNotReceiveKeepsNothing(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		b := memory.New()
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			var ends [2]*remote.Chan[int]
			for i := range ends {
				c, err := remote.Durable[int](ctx, n, b.Node("node "+strconv.Itoa(i)), orders, 3)
				if err != nil {
					return err
				}
				defer c.Leave()
				ends[i] = c
			}
			for i := range 3 {
				if err := ends[0].Send(ctx, i); err != nil {
					return err
				}
			}
			it, err := ends[0].Recv(ctx) // this pulls all values
			if err != nil {
				return err
			}
			it.Nak(0)
			for range 3 {
				it, err := ends[1].Recv(ctx)
				if err != nil {
					return err
				}
				if err := it.Ack(ctx); err != nil {
					return err
				}
			}
			most := 2 * b.Node("observer").Info().Lease
			if s.Now() > most {
				s.Errorf("it took %v", s.Now())
			}
			// The first end continues when one of its fibers receives, even by a case that was made before.
			var dst *remote.Item[int]
			receive := ends[0].RecvCase(&dst)
			for i := range 2 {
				if err := coir.Sleep(ctx, 5*time.Minute); err != nil {
					return err
				}
				if err := ends[1].Send(ctx, i); err != nil {
					return err
				}
				began := s.Now()
				if _, err := coir.Select(ctx, receive); err != nil {
					return err
				}
				if took := s.Now() - began; took > most {
					s.Errorf("a receive took %v", took)
				}
				if err := dst.Ack(ctx); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			s.Errorf("%v", err)
		}
	}, simtest.Schedules(300), sim.WithSteps(20_000))
}

// A broker that restarts delivers a value again while a fiber holds it. That fiber's process does not hand the value
// over again.
func TestSimAHeldValueIsHandedOverOnce(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		var holders atomic.Int32
		b := memory.New()
		_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			n.Go("receiver", func(ctx context.Context) error {
				return process(ctx, b, "receiver", 1, func(ctx context.Context, _ *memory.Node, c *remote.Chan[int]) error {
					return coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
						for i := range 2 {
							n.Go("worker", func(ctx context.Context) error {
								for it, err := range c.All(ctx) {
									if err != nil {
										return err
									}
									if holders.Add(1) > 1 {
										s.Errorf("two fibers of a process have the value")
									}
									err := coir.Sleep(ctx, 10*time.Second)
									holders.Add(-1)
									if err := errors.Join(err, it.Ack(ctx)); err != nil {
										return err
									}
								}
								return nil
							}, coir.WithIndex(i))
						}
						return nil
					})
				})
			})
			return process(ctx, b, "sender", 1, func(ctx context.Context, _ *memory.Node, c *remote.Chan[int]) error {
				if err := c.Send(ctx, 1); err != nil {
					return err
				}
				return c.Close(ctx)
			})
		})
	}, simtest.Schedules(1000), sim.WithFaults("remote restart"))
}

// inOneProcess runs f as a process with one end, and the nursery of the process.
func inOneProcess(ctx context.Context, s *sim.Sim, capacity int,
	f func(ctx context.Context, n *coir.Nursery, c *remote.Chan[int]) error, opts ...remote.Option,
) {
	err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		c, err := remote.Durable[int](ctx, n, memory.New().Node("one"), orders, capacity, opts...)
		if err != nil {
			return err
		}
		defer c.Leave()
		return f(ctx, n, c)
	})
	if err != nil {
		s.Errorf("%v", err)
	}
}

// A fiber that ends without settling its value does not keep it: another fiber receives the value soon.
func TestSimAnAbandonedValueComesAgain(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		inOneProcess(ctx, s, 1, func(ctx context.Context, n *coir.Nursery, c *remote.Chan[int]) error {
			if err := c.Send(ctx, 1); err != nil {
				return err
			}
			forgetful := n.Go("forgetful", func(ctx context.Context) error {
				_, err := c.Recv(ctx)
				return err
			})
			if err := forgetful.Wait(ctx); err != nil {
				return err
			}
			it, err := c.Recv(ctx)
			if err != nil {
				return err
			}
			if it.Tries != 2 || s.Now() > 30*time.Second {
				s.Errorf("it came the %dth time, after %v", it.Tries, s.Now())
			}
			return it.Ack(ctx)
		})
	}, simtest.Schedules(300), sim.WithSteps(2000))
}

// Two values are removed, and only then do two refused sends tell the receiver that they wait. Spare credit is recorded
// once, but there is room for both sends.
func TestSimSpareCreditIsForAll(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		inOneProcess(ctx, s, 2, func(ctx context.Context, _ *coir.Nursery, c *remote.Chan[int]) error {
			for v := range 2 {
				if err := c.Send(ctx, v); err != nil {
					return err
				}
			}
			first, err := c.Recv(ctx)
			if err != nil {
				return err
			}
			second, err := c.Recv(ctx)
			if err != nil {
				return err
			}
			return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
				for v := range 2 {
					n.Go("sender", func(ctx context.Context) error { return c.Send(ctx, 2+v) }, coir.WithIndex(v))
				}
				return errors.Join(first.Ack(ctx), second.Ack(ctx))
			})
		})
		if s.Now() >= pollMin {
			s.Errorf("it took %v", s.Now())
		}
	}, simtest.Schedules(5000))
}

// A process that has lost an acknowledgement does not hand the value over again.
func TestSimALostAckIsHidden(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		b, effects := memory.New(memory.WithWindow(time.Hour)), map[int]int{} // long enough for each Send to succeed
		err := process(ctx, b, "both", 2, func(ctx context.Context, _ *memory.Node, c *remote.Chan[int]) error {
			for v := range 2 {
				if err := c.Send(ctx, v); err != nil {
					return err
				}
			}
			for range 2 {
				it, err := c.Recv(ctx)
				if err != nil {
					return err
				}
				effects[it.Value]++
				in, cancel := coir.WithTimeout(ctx, time.Duration(1+s.Intn(2))*time.Second)
				err = it.Ack(in)
				cancel()
				s.Sometimes(errors.Is(err, remote.ErrUnknown), "an acknowledgement is unknown")
			}
			if err := c.Close(ctx); err != nil {
				return err
			}
			for it, err := range c.All(ctx) {
				if err != nil {
					return err
				}
				effects[it.Value]++
			}
			return nil
		})
		if err != nil || effects[0] != 1 || effects[1] != 1 {
			s.Errorf("%v, %v", effects, err)
		}
	}, simtest.Schedules(2000), sim.WithFaults("remote lose", "remote partition"))
}

// A value that cannot be decoded, and a value that is never acknowledged, become dead letters with their reason, once.
// The other values are received.
func TestSimPoisonBecomesADeadLetter(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		b, good, dead := memory.New(), 0, map[string]int{}
		_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			n.Go("receiver", func(ctx context.Context) error {
				return process(ctx, b, "receiver", 4, func(ctx context.Context, node *memory.Node, c *remote.Chan[int]) error {
					for {
						err := c.RecvTx(ctx, func(_ context.Context, it *remote.Item[int]) error {
							if it.Value == 13 {
								return errors.New("never")
							}
							if node.Alive() {
								good |= 1 << it.Value
							}
							return nil
						})
						if errors.Is(err, coir.ErrClosed) || coir.Ended(ctx) != nil {
							return nil
						}
					}
				}, remote.WithTries(20), remote.WithPrefetch(2))
			})
			c, err := remote.Durable[any](ctx, n, b.Node("sender"), orders, 4)
			if err != nil {
				return err
			}
			defer c.Leave()
			for _, v := range []any{1, "poison", 13, 2} {
				if err := c.Send(ctx, v); err != nil {
					return err
				}
			}
			return c.Close(ctx)
		})
		_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			node := b.Node("undertaker")
			c, err := remote.Durable[remote.DeadLetter](ctx, n, node, remote.DeadName(orders), remote.DeadCapacity)
			if err != nil {
				return err
			}
			defer c.Leave()
			if err := c.Close(ctx); err != nil {
				return err
			}
			for it, err := range c.All(ctx) {
				if err != nil {
					return err
				}
				dead[string(it.Value.Data)]++
				if it.Value.Reason == "" || it.Value.ID == (remote.ID{}) {
					s.Errorf("a dead letter says too little: %+v", it.Value)
				}
				if err := it.Ack(ctx); err != nil {
					return err
				}
			}
			return nil
		})
		if good != 1<<1|1<<2 || dead[`"poison"`] != 1 || dead["13"] != 1 || len(dead) != 2 {
			s.Errorf("received %b, dead letters %v", good, dead)
		}
	}, simtest.Schedules(2000), sim.WithFaults("remote lose", "remote duplicate", "remote delay",
		"remote crash", "remote restart"))
}

// A value that ends each process that receives it becomes a dead letter. The values that were pulled with it do not.
func TestSimAValueThatEndsItsProcess(t *testing.T) {
	const values, poison = 6, 2
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		b, got := memory.New(), map[int]bool{}
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			c, err := remote.Durable[int](ctx, n, b.Node("sender"), orders, values)
			if err != nil {
				return err
			}
			defer c.Leave()
			for v := range values {
				if err := c.Send(ctx, v); err != nil {
					return err
				}
			}
			if err := c.Close(ctx); err != nil {
				return err
			}
			return process(ctx, b, "receiver", values, func(ctx context.Context, node *memory.Node, c *remote.Chan[int]) error {
				for it, err := range c.All(ctx) {
					if err != nil {
						return err
					}
					if it.Value == poison {
						node.Crash()
						return nil
					}
					got[it.Value] = true
					if err := it.Ack(ctx); err != nil {
						return err
					}
				}
				return nil
			}, remote.WithTries(2))
		})
		if err != nil || len(got) != values-1 || got[poison] || b.Len(remote.DeadName(orders)) != 1 {
			s.Errorf("received %v, %d dead letters, %v", got, b.Len(remote.DeadName(orders)), err)
		}
	}, simtest.Schedules(300), sim.WithSteps(20_000))
}

// volatile runs f as a process with an end of a volatile channel. The buffer of the end has one place.
func volatile(ctx context.Context, b *memory.Broker, name string,
	f func(ctx context.Context, c *remote.Chan[int]) error,
) error {
	return b.Run(ctx, name, func(ctx context.Context, node *memory.Node) error {
		return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			c, err := remote.Volatile[int](ctx, n, node, orders, 1)
			if err != nil {
				return err
			}
			defer c.Leave()
			return f(ctx, c)
		})
	})
}

// A value of a volatile channel is received at most once, and exactly once if its Send returned nil and no process
// ends.
func TestSimVolatileAtMostOnce(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		b, l := memory.New(), newLedger()
		_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			defer n.Cancel(nil)
			for i := range 2 {
				n.Go("receiver", func(ctx context.Context) error {
					return volatile(ctx, b, "receiver "+strconv.Itoa(i), func(ctx context.Context, c *remote.Chan[int]) error {
						for it, err := range c.All(ctx) {
							if err != nil {
								return nil
							}
							l.mu.Lock()
							l.effects[it.Value]++
							l.mu.Unlock()
						}
						return nil
					})
				}, coir.WithIndex(i))
			}
			err := volatile(ctx, b, "sender", func(ctx context.Context, c *remote.Chan[int]) error {
				for range 4 {
					v, _ := l.takeOf(0, 4)
					l.sent(v, outcomeOf(c.Send(ctx, v)))
				}
				return nil
			})
			_ = coir.Sleep(ctx, time.Minute) // values on their way arrive
			return err
		})
		l.check(s)
	}, simtest.Schedules(3000), sim.WithFaults("remote lose", "remote duplicate", "remote delay",
		"remote refuse", "remote partition"))
}

// On a volatile channel, credit comes when a receiver has taken a value: no sender waits for its poll.
func TestSimVolatileCreditIsPrompt(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		b, got := memory.New(), 0
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			ready := coir.NewEvent()
			n.Go("receiver", func(ctx context.Context) error {
				return volatile(ctx, b, "receiver", func(ctx context.Context, c *remote.Chan[int]) error {
					var it *remote.Item[int]
					next := c.RecvCase(&it)
					ready.Set()
					for range 6 {
						if _, err := coir.Select(ctx, next); err != nil {
							return err
						}
						next = c.RecvCase(&it)
						got++
					}
					return nil
				})
			})
			if err := ready.Wait(ctx); err != nil { // without a receiver a send waits, and tries from time to time
				return err
			}
			for i := range 2 {
				n.Go("sender", func(ctx context.Context) error {
					return volatile(ctx, b, "sender "+strconv.Itoa(i), func(ctx context.Context, c *remote.Chan[int]) error {
						for v := range 3 {
							if err := c.Send(ctx, v); err != nil {
								return err
							}
						}
						return nil
					})
				}, coir.WithIndex(i))
			}
			return nil
		})
		if err != nil || got != 6 || s.Now() >= pollMin {
			s.Errorf("%d values in %v, %v", got, s.Now(), err)
		}
	}, simtest.Schedules(3000))
}

// Fibers of one end share requests. Each fiber learns the outcome for its own value, even if it gives up, before or
// after its value is in a request. The values that a fiber certainly sent arrive in order.
func TestSimVolatileSharedRequests(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		b, l := memory.New(), newLedger()
		var got []int
		_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			defer n.Cancel(nil)
			n.Go("receiver", func(ctx context.Context) error {
				return volatile(ctx, b, "receiver", func(ctx context.Context, c *remote.Chan[int]) error {
					for it, err := range c.All(ctx) {
						if err != nil {
							return nil
						}
						l.mu.Lock()
						l.effects[it.Value]++
						got = append(got, it.Value)
						l.mu.Unlock()
					}
					return nil
				})
			})
			err := volatile(ctx, b, "sender", func(ctx context.Context, c *remote.Chan[int]) error {
				return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
					for i := range 3 {
						n.Go("sender", func(ctx context.Context) error {
							for range 2 {
								v, _ := l.takeOf(i, 2)
								limit := time.Hour
								if s.Fault("short of time") {
									limit = [...]time.Duration{time.Millisecond, 300 * time.Millisecond}[s.Intn(2)]
								}
								in, cancel := coir.WithTimeout(ctx, limit)
								l.sent(v, outcomeOf(c.Send(in, v)))
								cancel()
							}
							return nil
						}, coir.WithIndex(i))
					}
					return nil
				})
			})
			_ = coir.Sleep(ctx, time.Minute) // values on their way arrive
			return err
		})
		l.check(s)
		last := map[int]int{}
		for _, v := range got {
			if l.outcomes[v] == stored && v < last[v/100] {
				s.Errorf("%d came after %d", v, last[v/100])
			}
			if l.outcomes[v] == stored {
				last[v/100] = v
			}
		}
		for _, o := range l.outcomes {
			s.Sometimes(o == failed, "a send gives up before its value is in a request")
			s.Sometimes(o == unknown, "a send does not know")
		}
	}, simtest.Schedules(3000), sim.WithFaults("remote lose", "remote duplicate", "remote delay",
		"remote refuse", "short of time"))
}
