package sim

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/document"
)

// The corpus: typical mistakes, each as a small program, and the same program without the mistake. The default settings
// must find every mistake, and must not fail the corrected program. Memory that fibers share is atomic, so none of the
// programs has a data race, and only another order shows that they are wrong.

// program is a program to explore.
type program = func(ctx context.Context, s *Sim)

// bug is a mistake. With fixed set the program does not have it.
type bug struct {
	name string
	make func(fixed bool) program
	kind Kind
	opts []Option
}

var corpus = []bug{
	{"lost update", lostUpdate, KindError, nil},
	{"locks in opposite order", oppositeOrder, KindDeadlock, nil},
	{"forgotten close", forgottenClose, KindDeadlock, nil},
	{"double completion", doubleCompletion, KindError, nil},
	{"missed cancel", missedCancel, KindDeadlock, nil},
	{"unbounded wait after a timeout", waitAfterTimeout, KindDeadlock, nil},
	{"order assumed over two channels", assumedOrder, KindError, nil},
	{"select starves its stop case", starvedStop, KindLivelock, []Option{WithSteps(400)}},
	{"leak behind an early return", earlyReturn, KindDeadlock, nil},
	{"retry storm", retryStorm, KindLivelock, []Option{WithSteps(400)}},
	{"pool that waits in itself", poolInItself, KindDeadlock, nil},
	{"check of Len, then receive", lenThenRecv, KindDeadlock, nil},
	{"refused send counted as success", ignoredClose, KindError, nil},
	{"timeout taken for a failure", timeoutIsNotFailure, KindError, []Option{WithClock(ClockRacing)}},
	{"first writer closes for all", firstWriterCloses, KindError, nil},
	{"semaphore released twice", releasedTwice, KindError, nil},
	{"signal before anybody waits", lostSignal, KindDeadlock, nil},
	{"shutdown forgets what it accepted", forgetfulShutdown, KindDeadlock, nil},
	{"initialised twice", initialisedTwice, KindError, nil},
	{"audit between two transfers", tornAudit, KindError, nil},
	{"used after it was removed", usedAfterRemoval, KindPanic, nil},
	{"mutexes in opposite order", lockOrder, KindDeadlock, nil},
	{"unlock forgotten on an error path", forgottenUnlock, KindDeadlock, nil},
	{"permit lost in a cancel", permitLostInCancel, KindDeadlock, nil},
	{"read lock taken twice", readLockedTwice, KindDeadlock, nil},
	{"flag set before the value of a Once", doubleChecked, KindError, nil},
	{"too few at a barrier", tooFewAtBarrier, KindDeadlock, nil},
	{"wait without a loop", waitWithoutLoop, KindError, nil},
	{"change after the signal", changeAfterSignal, KindDeadlock, nil},
	{"TryLock without a look", ignoredTryLock, KindPanic, nil},
}

// find returns the mistake with the given name.
func find(t testing.TB, name string) bug {
	for _, b := range corpus {
		if b.name == name {
			return b
		}
	}
	t.Fatalf("the corpus has no %q", name)
	return bug{}
}

// nursery runs body, which starts the fibers of a program, and waits for them. The program sees how they end, so the
// error is ignored; after a failure of the schedule it only reports the cancellation.
func nursery(ctx context.Context, body func(ctx context.Context, n *coir.Nursery)) {
	_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		body(ctx, n)
		return nil
	})
}

// lostUpdate: an account is a channel that holds its balance. Each deposit reads the balance, puts it back, and later
// replaces it by a sum that may be out of date. Fixed, it keeps the balance until it has the new one.
func lostUpdate(fixed bool) program {
	return func(ctx context.Context, s *Sim) {
		account := coir.NewChan[int](1, coir.WithName("account"))
		_ = account.Send(ctx, 0)
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			for i := range 2 {
				n.Go("deposit", func(ctx context.Context) error {
					balance, err := account.Recv(ctx)
					if err != nil {
						return err
					}
					if !fixed {
						if err := account.Send(ctx, balance); err != nil {
							return err
						}
						if _, err := account.Recv(ctx); err != nil {
							return err
						}
					}
					return account.Send(ctx, balance+1)
				}, coir.WithIndex(i))
			}
		})
		if balance, _ := account.TryRecv(); balance != 2 {
			s.Errorf("two deposits make %d", balance)
		}
	}
}

// oppositeOrder: two locks, each a channel with one token. Fixed, both fibers take them in the same order.
func oppositeOrder(fixed bool) program {
	return func(ctx context.Context, _ *Sim) {
		a, b := coir.NewChan[int](1, coir.WithName("a")), coir.NewChan[int](1, coir.WithName("b"))
		_ = a.Send(ctx, 1)
		_ = b.Send(ctx, 1)
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			lock := func(first, second *coir.Chan[int]) func(context.Context) error {
				return func(ctx context.Context) error {
					v, err := first.Recv(ctx)
					if err != nil {
						return err
					}
					w, err := second.Recv(ctx)
					if err != nil {
						return err
					}
					_ = second.Send(ctx, w)
					return first.Send(ctx, v)
				}
			}
			n.Go("ab", lock(a, b))
			if fixed {
				n.Go("ba", lock(a, b))
			} else {
				n.Go("ba", lock(b, a))
			}
		})
	}
}

// forgottenClose: the producer closes the channel at its end, but not where it returns early. Fixed, the close is
// deferred.
func forgottenClose(fixed bool) program {
	return func(ctx context.Context, _ *Sim) {
		rows, stop := coir.NewChan[int](0, coir.WithName("rows")), coir.NewChan[bool](1, coir.WithName("stop"))
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			n.Go("producer", func(ctx context.Context) error {
				if fixed {
					defer rows.Close()
				}
				for i := range 2 {
					if _, err := stop.TryRecv(); err == nil {
						return nil
					}
					if err := rows.Send(ctx, i); err != nil {
						return err
					}
				}
				rows.Close()
				return nil
			})
			n.Go("consumer", func(ctx context.Context) error {
				for _, err := range rows.All(ctx) {
					if err != nil {
						return err
					}
				}
				return nil
			})
			n.Go("user", func(ctx context.Context) error { return stop.Send(ctx, true) })
		})
	}
}

// doubleCompletion: the first of a worker and its fallback answers a request. Fixed, check and claim are one step.
func doubleCompletion(fixed bool) program {
	return func(ctx context.Context, s *Sim) {
		answers := coir.NewChan[string](2, coir.WithName("answers"))
		var answered atomic.Bool
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			for _, name := range []string{"worker", "fallback"} {
				n.Go(name, func(ctx context.Context) error {
					if fixed {
						if answered.CompareAndSwap(false, true) {
							return answers.Send(ctx, name)
						}
					} else if !answered.Load() {
						err := answers.Send(ctx, name)
						answered.Store(true)
						return err
					}
					return nil
				})
			}
		})
		if n := answers.Len(); n != 1 {
			s.Errorf("%d answers to one request", n)
		}
	}
}

// missedCancel: the worker checks whether it must stop, and then waits for a job that no longer comes. Fixed, it waits
// for both.
func missedCancel(fixed bool) program {
	return func(ctx context.Context, _ *Sim) {
		jobs, stop := coir.NewChan[int](0, coir.WithName("jobs")), coir.NewChan[bool](0, coir.WithName("stop"))
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			n.Go("worker", func(ctx context.Context) error {
				for {
					if fixed {
						if i, err := coir.Select(ctx, jobs.RecvCase(nil), stop.RecvCase(nil)); i != 0 || err != nil {
							return nil
						}
						continue
					}
					if _, err := stop.TryRecv(); errors.Is(err, coir.ErrClosed) {
						return nil
					}
					if _, err := jobs.Recv(ctx); err != nil {
						return err
					}
				}
			})
			n.Go("master", func(ctx context.Context) error {
				err := jobs.Send(ctx, 1)
				stop.Close()
				return err
			})
		})
	}
}

// waitAfterTimeout: a client gives up after two seconds, and a server that takes three cannot deliver its reply. Fixed,
// the channel has room for the reply.
func waitAfterTimeout(fixed bool) program {
	capacity := 0
	if fixed {
		capacity = 1
	}
	return func(ctx context.Context, s *Sim) {
		reply := coir.NewChan[int](capacity, coir.WithName("reply"))
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			n.Go("server", func(ctx context.Context) error {
				if err := coir.Sleep(ctx, time.Duration(1+2*s.Intn(2))*time.Second); err != nil {
					return err
				}
				return reply.Send(ctx, 1)
			})
			n.Go("client", func(ctx context.Context) error {
				_, _ = reply.RecvTimeout(ctx, 2*time.Second)
				return nil
			})
		})
	}
}

// assumedOrder: a value that was sent first on one channel need not be received before a value sent on another. Fixed,
// the handler waits for the value that it needs first.
func assumedOrder(fixed bool) program {
	return func(ctx context.Context, s *Sim) {
		config, requests := coir.NewChan[string](1, coir.WithName("config")), coir.NewChan[int](1, coir.WithName("requests"))
		nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
			n.Go("loader", func(ctx context.Context) error { return config.Send(ctx, "v1") })
			n.Go("client", func(ctx context.Context) error { return requests.Send(ctx, 1) })
			version := ""
			if fixed {
				version, _ = config.Recv(ctx)
				_, _ = requests.Recv(ctx)
			} else {
				for {
					if i, err := coir.Select(ctx, config.RecvCase(&version), requests.RecvCase(nil)); i != 0 || err != nil {
						break
					}
				}
			}
			if version == "" {
				s.Errorf("a request was served without a configuration")
			}
		})
	}
}

// starvedStop: the producer prefers to send, so while a receiver is fast enough it never sees that it must stop. Fixed,
// the stop comes first.
func starvedStop(fixed bool) program {
	return func(ctx context.Context, _ *Sim) {
		out, stop := coir.NewChan[int](2, coir.WithName("out")), coir.NewChan[bool](0, coir.WithName("stop"))
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			n.Go("producer", func(ctx context.Context) error {
				defer out.Close()
				for {
					cases, stopped := []coir.Case{out.SendCase(1), stop.RecvCase(nil)}, 1
					if fixed {
						cases[0], cases[1], stopped = cases[1], cases[0], 0
					}
					if i, err := coir.SelectPriority(ctx, cases...); i == stopped || err != nil {
						return nil
					}
				}
			})
			n.Go("consumer", func(ctx context.Context) error {
				seen := 0
				for _, err := range out.All(ctx) {
					if err != nil {
						return err
					}
					if seen++; seen == 3 {
						stop.Close()
					}
				}
				return nil
			})
		})
	}
}

// earlyReturn: two replicas are asked, and the first answer is enough; the other is never received. Fixed, there is
// room for both.
func earlyReturn(fixed bool) program {
	capacity := 0
	if fixed {
		capacity = 2
	}
	return func(ctx context.Context, _ *Sim) {
		answers := coir.NewChan[int](capacity, coir.WithName("answers"))
		nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
			for i := range 2 {
				n.Go("replica", func(ctx context.Context) error { return answers.Send(ctx, i) }, coir.WithIndex(i))
			}
			_, _ = answers.Recv(ctx)
		})
	}
}

// retryStorm: the client keeps trying, whether or not the server is still running. Fixed, it waits in line, and a
// server that stops says so.
func retryStorm(fixed bool) program {
	return func(ctx context.Context, _ *Sim) {
		line, stop := coir.NewChan[int](0, coir.WithName("line")), coir.NewChan[bool](1, coir.WithName("stop"))
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			n.Go("server", func(ctx context.Context) error {
				if fixed {
					defer line.Abort(nil)
				}
				_, err := coir.Select(ctx, line.RecvCase(nil), stop.RecvCase(nil))
				return err
			})
			n.Go("client", func(ctx context.Context) error {
				if fixed {
					_ = line.Send(ctx, 1)
					return nil
				}
				for line.TrySend(1) != nil {
					if err := coir.Yield(ctx); err != nil {
						return err
					}
				}
				return nil
			})
			n.Go("operator", func(ctx context.Context) error { return stop.Send(ctx, true) })
		})
	}
}

// poolInItself: both workers of a pool run a job that waits for a job of the same pool. Fixed, the pool is a nursery
// with a limit, where a fiber that waits for another gives up its place.
func poolInItself(fixed bool) program {
	if fixed {
		return func(ctx context.Context, _ *Sim) {
			nursery(ctx, func(_ context.Context, n *coir.Nursery) {
				n.Limit(2)
				for i := range 2 {
					n.Go("outer", func(ctx context.Context) error {
						return n.Go("inner", func(context.Context) error { return nil }, coir.WithIndex(i)).Wait(ctx)
					}, coir.WithIndex(i))
				}
			})
		}
	}
	return func(ctx context.Context, _ *Sim) {
		type job func(ctx context.Context) error
		jobs, done := coir.NewChan[job](coir.Unbounded, coir.WithName("jobs")), coir.NewChan[bool](2, coir.WithName("done"))
		outer := func(ctx context.Context) error {
			inner := coir.NewChan[bool](1, coir.WithName("inner"))
			_ = jobs.Send(ctx, func(ctx context.Context) error { return inner.Send(ctx, true) })
			if _, err := inner.Recv(ctx); err != nil {
				return err
			}
			return done.Send(ctx, true)
		}
		nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
			for i := range 2 {
				n.Go("worker", func(ctx context.Context) error {
					for do, err := range jobs.All(ctx) {
						if err != nil {
							return err
						}
						if err := do(ctx); err != nil {
							return err
						}
					}
					return nil
				}, coir.WithIndex(i))
			}
			for range 2 {
				_ = jobs.Send(ctx, outer)
			}
			for range 2 {
				_, _ = done.Recv(ctx)
			}
			jobs.Close()
		})
	}
}

// lenThenRecv: two fibers see that there is a task, and one gets it. Fixed, checking and taking are one step.
func lenThenRecv(fixed bool) program {
	return func(ctx context.Context, _ *Sim) {
		tasks := coir.NewChan[int](1, coir.WithName("tasks"))
		_ = tasks.Send(ctx, 1)
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			for i := range 2 {
				n.Go("worker", func(ctx context.Context) error {
					if fixed {
						_, _ = tasks.TryRecv()
					} else if tasks.Len() > 0 {
						_, _ = tasks.Recv(ctx)
					}
					return nil
				}, coir.WithIndex(i))
			}
		})
	}
}

// ignoredClose: the sender counts its sends without checking the error, and the channel is closed meanwhile. Fixed, it
// checks the error.
func ignoredClose(fixed bool) program {
	return func(ctx context.Context, s *Sim) {
		events := coir.NewChan[int](2, coir.WithName("events"))
		counted := 0
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			n.Go("sender", func(ctx context.Context) error {
				for i := range 2 {
					if err := events.Send(ctx, i); err == nil || !fixed {
						counted++
					}
				}
				return nil
			})
			n.Go("closer", func(context.Context) error {
				events.Close()
				return nil
			})
		})
		if n := events.Len(); n != counted {
			s.Errorf("%d events were counted as sent, and there are %d", counted, n)
		}
	}
}

// timeoutIsNotFailure: a client whose reply is late asks again, and the payment is made twice. Fixed, the server knows
// the payments that it has made. This needs a clock that does not wait until no fiber can run: the server is never
// slow, just late.
func timeoutIsNotFailure(fixed bool) program {
	return func(ctx context.Context, s *Sim) {
		payments, replies := coir.NewChan[int](0, coir.WithName("payments")), coir.NewChan[int](2, coir.WithName("replies"))
		paid := 0
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			n.Go("server", func(ctx context.Context) error {
				known := -1
				for id, err := range payments.All(ctx) {
					if err != nil {
						return err
					}
					if id != known || !fixed {
						paid++
					}
					known = id
					if err := replies.Send(ctx, id); err != nil {
						return err
					}
				}
				return nil
			})
			n.Go("client", func(ctx context.Context) error {
				defer payments.Close()
				for range 2 {
					if err := payments.Send(ctx, 7); err != nil {
						return err
					}
					if _, err := replies.RecvTimeout(ctx, time.Second); err == nil {
						return nil
					}
				}
				return nil
			})
		})
		if paid != 1 {
			s.Errorf("one payment was made %d times", paid)
		}
	}
}

// firstWriterCloses: each of two writers closes the channel when it is done. Fixed, the writers are counted: the last
// one closes.
func firstWriterCloses(fixed bool) program {
	return func(ctx context.Context, s *Sim) {
		received := 0
		nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
			if fixed {
				w, r := coir.Pipe[int](0, coir.WithName("lines"))
				for i, w := range []*coir.Writer[int]{w, w.Clone()} {
					n.Go("writer", func(ctx context.Context) error {
						defer w.Close()
						return w.Send(ctx, i)
					}, coir.WithIndex(i))
				}
				for _, err := range r.All(ctx) {
					if err != nil {
						return
					}
					received++
				}
				return
			}
			lines := coir.NewChan[int](0, coir.WithName("lines"))
			for i := range 2 {
				n.Go("writer", func(ctx context.Context) error {
					defer lines.Close()
					_ = lines.Send(ctx, i)
					return nil
				}, coir.WithIndex(i))
			}
			for _, err := range lines.All(ctx) {
				if err != nil {
					return
				}
				received++
			}
		})
		if received != 2 {
			s.Errorf("two writers, and %d lines", received)
		}
	}
}

// releasedTwice: a semaphore is released where the work ends, and by one fiber of three also on the way out. Fixed,
// each fiber releases it once.
func releasedTwice(fixed bool) program {
	return func(ctx context.Context, s *Sim) {
		semaphore := coir.NewChan[bool](1, coir.WithName("semaphore"))
		var inside, most atomic.Int32
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			for i := range 3 {
				n.Go("user", func(ctx context.Context) error {
					if err := semaphore.Send(ctx, true); err != nil {
						return err
					}
					if now := inside.Add(1); now > most.Load() {
						most.Store(now)
					}
					err := coir.Yield(ctx)
					inside.Add(-1)
					_, _ = semaphore.TryRecv()
					if i == 0 && !fixed {
						_, _ = semaphore.TryRecv()
					}
					return err
				}, coir.WithIndex(i))
			}
		})
		if m := most.Load(); m > 1 {
			s.Errorf("%d inside at once", m)
		}
	}
}

// lostSignal: a signal that is tried before its receiver waits is lost. Fixed, the channel has room for it.
func lostSignal(fixed bool) program {
	capacity := 0
	if fixed {
		capacity = 1
	}
	return func(ctx context.Context, _ *Sim) {
		ready := coir.NewChan[bool](capacity, coir.WithName("ready"))
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			n.Go("waiter", func(ctx context.Context) error {
				_, err := ready.Recv(ctx)
				return err
			})
			n.Go("notifier", func(context.Context) error {
				_ = ready.TrySend(true)
				return nil
			})
		})
	}
}

// forgetfulShutdown: a server that stops leaves the jobs in its queue, and their clients wait forever. Fixed, closing
// the queue stops the server: accepted jobs are still served, and later ones are refused.
func forgetfulShutdown(fixed bool) program {
	return func(ctx context.Context, _ *Sim) {
		jobs, stop := coir.NewChan[*coir.Chan[int]](1, coir.WithName("jobs")), coir.NewChan[bool](0, coir.WithName("stop"))
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			n.Go("server", func(ctx context.Context) error {
				for {
					var reply *coir.Chan[int]
					if i, err := coir.Select(ctx, jobs.RecvCase(&reply), stop.RecvCase(nil)); i != 0 || err != nil {
						return nil
					}
					if err := reply.Send(ctx, 1); err != nil {
						return err
					}
				}
			})
			n.Go("client", func(ctx context.Context) error {
				reply := coir.NewChan[int](1, coir.WithName("reply"))
				if err := jobs.Send(ctx, reply); err != nil {
					return nil
				}
				_, err := reply.Recv(ctx)
				return err
			})
			n.Go("operator", func(context.Context) error {
				if fixed {
					jobs.Close()
				} else {
					stop.Close()
				}
				return nil
			})
		})
	}
}

// initialisedTwice: two fibers find no connection and both make one. Fixed, they check under a lock.
func initialisedTwice(fixed bool) program {
	return func(ctx context.Context, s *Sim) {
		lock := coir.NewChan[bool](1, coir.WithName("lock"))
		var connected atomic.Bool
		var dials atomic.Int32
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			for i := range 2 {
				n.Go("user", func(ctx context.Context) error {
					if fixed {
						if err := lock.Send(ctx, true); err != nil {
							return err
						}
						defer lock.TryRecv() //nolint:errcheck // it is held
					}
					if connected.Load() {
						return nil
					}
					dials.Add(1)
					if err := coir.Sleep(ctx, time.Millisecond); err != nil {
						return err
					}
					connected.Store(true)
					return nil
				}, coir.WithIndex(i))
			}
		})
		if d := dials.Load(); d != 1 {
			s.Errorf("dialled %d times", d)
		}
	}
}

// tornAudit: an audit adds up two accounts during a transfer between them. Fixed, both hold the two accounts together.
func tornAudit(fixed bool) program {
	return func(ctx context.Context, s *Sim) {
		a, b := coir.NewChan[int](1, coir.WithName("a")), coir.NewChan[int](1, coir.WithName("b"))
		_ = a.Send(ctx, 50)
		_ = b.Send(ctx, 50)
		visit := func(ctx context.Context, change int) (sum int, err error) {
			x, err := a.Recv(ctx)
			if err != nil {
				return 0, err
			}
			if !fixed {
				_ = a.Send(ctx, x-change)
			}
			y, err := b.Recv(ctx)
			if err != nil {
				return 0, err
			}
			if fixed {
				_ = a.Send(ctx, x-change)
			}
			return x + y, b.Send(ctx, y+change)
		}
		nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
			n.Go("transfer", func(ctx context.Context) error {
				_, err := visit(ctx, 10)
				return err
			})
			if sum, err := visit(ctx, 0); err == nil && sum != 100 {
				s.Errorf("the accounts add up to %d", sum)
			}
		})
	}
}

// usedAfterRemoval: a handler checks whether there is a session, writes a line of log, and uses the session, which has
// been removed meanwhile. Fixed, it keeps the session that it has seen.
func usedAfterRemoval(fixed bool) program {
	type session struct{ hits atomic.Int32 }
	return func(ctx context.Context, _ *Sim) {
		log := coir.NewChan[string](1, coir.WithName("log"))
		var current atomic.Pointer[session]
		current.Store(new(session))
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			n.Go("handler", func(ctx context.Context) error {
				found := current.Load()
				if found == nil {
					return nil
				}
				if err := log.Send(ctx, "hit"); err != nil {
					return err
				}
				if !fixed {
					found = current.Load()
				}
				found.hits.Add(1)
				return nil
			})
			n.Go("expiry", func(context.Context) error {
				current.Store(nil)
				return nil
			})
		})
	}
}

func TestDefaultSettingsFindEveryBugOfTheCorpus(t *testing.T) {
	for _, b := range corpus {
		t.Run(b.name, func(t *testing.T) {
			res := Explore(b.make(false), append(b.opts, WithSchedules(10_000))...)
			if res.Failure == nil {
				t.Fatalf("not found in %d schedules", res.Schedules)
			}
			if res.Failure.Kind != b.kind {
				t.Errorf("found as %s, and is %s:\n%v", res.Failure.Kind, b.kind, res.Failure)
			}
			t.Logf("%d schedules\n%v", res.Schedules, res.Failure)
		})
	}
}

func TestCorrectedTwinsOfTheCorpusPass(t *testing.T) {
	for _, b := range corpus {
		t.Run(b.name, func(t *testing.T) {
			if res := Explore(b.make(true), append(b.opts, WithSchedules(scaled(2_000)))...); res.Failure != nil {
				t.Error(res.Failure)
			}
		})
	}
}

// TestWhatEachStrategyNeedsForTheCorpus shows why the default is several strategies in turn: no strategy needs the
// fewest schedules everywhere. If a seed matters, the figure is the mean over five. The test compares the table with
// that of the guide:
//
//	go test -v -run Corpus ./sim      prints it
//	go test ./sim -run Corpus -update writes it into the guide
func TestWhatEachStrategyNeedsForTheCorpus(t *testing.T) {
	onceInCI(t)
	const most, seeds = 10_000, 5
	needed := func(b bug, with func(seed uint64) Strategy, seeds uint64) string {
		sum := 0
		for seed := range seeds {
			res := Explore(b.make(false), append(b.opts, WithStrategy(with), WithSeed(seed+1), WithSchedules(most))...)
			switch {
			case res.Failure == nil && res.Complete:
				return "none of " + strconv.Itoa(res.Schedules)
			case res.Failure == nil:
				return "-"
			}
			sum += res.Schedules
		}
		return strconv.FormatFloat(float64(sum)/float64(seeds), 'f', -1, 64)
	}
	var table strings.Builder
	table.WriteString("| program | fails by | random | PCT(3) | uniform | exhaustive(2) | DPOR | default |\n|---|---|--:|--:|--:|--:|--:|--:|\n")
	for _, b := range corpus {
		fmt.Fprintf(&table, "| %s | %s | %s | %s | %s | %s | %s | %s |\n", b.name, b.kind,
			needed(b, Random, seeds),
			needed(b, func(seed uint64) Strategy { return PCT(seed, 3) }, seeds),
			needed(b, Uniform, seeds),
			needed(b, func(uint64) Strategy { return Exhaustive(2) }, 1),
			needed(b, func(uint64) Strategy { return DPOR() }, 1),
			needed(b, Default, seeds))
	}
	t.Log("\n" + table.String())
	inDocument(t, "../docs/guide/testing.md", "corpus", table.String())
}

// inDocument compares the part of a document between two marks with text, or replaces it with -update.
func inDocument(t *testing.T, path, mark, text string) {
	t.Helper()
	same, err := document.Keep(path, "<!-- "+mark+" -->\n", "<!-- end of "+mark+" -->\n", text, *update)
	if err != nil {
		t.Fatal(err)
	}
	if !same {
		t.Errorf("%s has another table; write this one with: go test ./sim -run %s -update", path, t.Name())
	}
}
