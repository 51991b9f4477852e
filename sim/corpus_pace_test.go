package sim

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/locks"
	"github.com/coir-go/coir/pace"
	"github.com/coir-go/coir/pubsub"
	"github.com/coir-go/coir/supervise"
)

// Mistakes in programs that keep a pace, have a supervisor, or use a watched value or a promise.

func init() {
	corpus = append(
		corpus,
		bug{"heartbeat over a lost message", heartbeatOverLoss, KindDeadlock, nil},
		bug{"limiter taken for a lock", limiterAsLock, KindError, nil},
		bug{"restart forgets what it took", forgetfulRestart, KindDeadlock, nil},
		bug{"restart leaves a lock locked", lockedRestart, KindDeadlock, nil},
		bug{"update between read and watch", missedUpdate, KindDeadlock, nil},
		bug{"promise resolved by two", resolvedByTwo, KindError, nil},
	)
}

// heartbeatOverLoss: a worker reports its end with a TrySend, which is lost if no fiber waits yet. A heartbeat
// continues to tick, so that something always happens. Fixed, the channel has room for the report.
func heartbeatOverLoss(fixed bool) program {
	return func(ctx context.Context, _ *Sim) {
		room := 0
		if fixed {
			room = 1
		}
		done := coir.NewChan[int](room, coir.WithName("done"))
		nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
			n.Go("heartbeat", func(ctx context.Context) error {
				beat := pace.NewTicker(time.Second, coir.WithName("heartbeat"))
				for {
					if _, err := beat.Wait(ctx); err != nil {
						return err
					}
				}
			})
			n.Go("worker", func(context.Context) error {
				_ = done.TrySend(1)
				return nil
			})
			_, _ = done.Recv(ctx)
			n.Cancel(nil)
		})
	}
}

// limiterAsLock: a limiter lets one caller pass every second, and each finishes long before the next, so callers seem
// to exclude each other. But one may be late. Fixed, a channel is the lock.
func limiterAsLock(fixed bool) program {
	return func(ctx context.Context, s *Sim) {
		api := pace.NewLimiter(time.Second, 1, coir.WithName("api"))
		lock := coir.NewChan[int](1, coir.WithName("lock"))
		answers := coir.NewChan[int](0, coir.WithName("answers"))
		var inside atomic.Int32
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			for i := range 2 {
				n.Go("caller", func(ctx context.Context) error {
					if err := api.Wait(ctx); err != nil {
						return err
					}
					if fixed {
						if err := lock.Send(ctx, i); err != nil {
							return err
						}
					}
					if inside.Add(1) > 1 {
						s.Errorf("two callers at the same time")
					}
					_, err := answers.Recv(ctx)
					inside.Add(-1)
					if fixed {
						_, _ = lock.TryRecv()
					}
					return err
				}, coir.WithIndex(i))
			}
			n.Go("server", func(ctx context.Context) error {
				for i := range 2 {
					if s.Intn(2) == 1 { // busy
						if err := coir.Sleep(ctx, 1500*time.Millisecond); err != nil {
							return err
						}
					}
					if err := answers.Send(ctx, i); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
}

// forgetfulRestart: a worker that fails has taken a job, and its next run does not know about it. Fixed, it puts the
// job back.
func forgetfulRestart(fixed bool) program {
	return func(ctx context.Context, s *Sim) {
		jobs, done := coir.NewChan[int](3, coir.WithName("jobs")), coir.NewChan[int](3, coir.WithName("done"))
		work := func(ctx context.Context) error {
			for {
				job, err := jobs.Recv(ctx)
				if err != nil {
					return err
				}
				if s.Intn(4) == 3 {
					if fixed {
						_ = jobs.TrySend(job) // it came from here, so there is room
					}
					return errors.New("connection lost")
				}
				if err := done.Send(ctx, job); err != nil {
					return err
				}
			}
		}
		nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
			workers := supervise.New([]supervise.Child{{Name: "a", Run: work}, {Name: "b", Run: work}},
				supervise.WithName("workers"), supervise.WithIntensity(1000, time.Hour), supervise.WithBackoff(0, 0))
			n.Go("workers", workers.Run)
			for i := range 3 {
				_ = jobs.Send(ctx, i)
			}
			for range 3 {
				if _, err := done.Recv(ctx); err != nil {
					return
				}
			}
			n.Cancel(nil)
		})
	}
}

// lockedRestart: a worker that finds no settings yet fails while it holds a lock, and its next run waits for that lock.
// Fixed, Unlock is deferred.
func lockedRestart(fixed bool) program {
	return func(ctx context.Context, _ *Sim) {
		cache, settings := locks.NewMutex(coir.WithName("cache")), coir.NewChan[int](1, coir.WithName("settings"))
		work := func(ctx context.Context) error {
			if err := cache.Lock(ctx); err != nil {
				return err
			}
			if fixed {
				defer cache.Unlock()
			}
			if _, err := settings.TryRecv(); err != nil {
				return err
			}
			if !fixed {
				cache.Unlock()
			}
			return nil
		}
		nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
			workers := supervise.New([]supervise.Child{{Name: "refresh", Run: work, Restart: supervise.RestartTransient}},
				supervise.WithName("workers"), supervise.WithIntensity(1000, time.Hour), supervise.WithBackoff(time.Second, time.Second))
			n.Go("workers", workers.Run)
			_ = settings.Send(ctx, 1)
		})
	}
}

// missedUpdate: a watcher reads a value, and then waits for the next one. It drops the first value that it receives,
// taking it for the value read before. But the value may have changed in between. Fixed, it checks the value.
func missedUpdate(fixed bool) program {
	return func(ctx context.Context, _ *Sim) {
		state := pubsub.NewLatest("starting", coir.WithName("state"))
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			n.Go("watcher", func(ctx context.Context) error {
				now := state.Get()
				changes := state.Watch()
				defer changes.Close()
				if !fixed {
					_, _ = changes.Recv(ctx)
				}
				for now != "ready" {
					var err error
					if now, err = changes.Recv(ctx); err != nil {
						return err
					}
				}
				return nil
			})
			n.Go("service", func(context.Context) error { return state.Set("ready") })
		})
	}
}

// resolvedByTwo: two mirrors are asked. The first to answer resolves the promise, and is to be paid. Each checks
// whether there is an answer already, but another may come between the check and Resolve. Fixed, each uses the result
// of Resolve.
func resolvedByTwo(fixed bool) program {
	return func(ctx context.Context, s *Sim) {
		answer := coir.NewPromise[int](coir.WithName("answer"))
		var paid atomic.Int32
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			for i := range 2 {
				n.Go("mirror", func(context.Context) error {
					if _, err := coir.TrySelect(answer.DoneCase(nil, nil)); err == nil {
						return nil // too late
					}
					if first := answer.Resolve(i); first || !fixed {
						paid.Add(1)
					}
					return nil
				}, coir.WithIndex(i))
			}
		})
		if n := paid.Load(); n != 1 {
			s.Errorf("%d mirrors are paid", n)
		}
	}
}
