package sim

import (
	"context"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/locks"
	"github.com/coir-go/coir/pace"
)

// A job queue. A worker that takes a job has a lease for it, which it renews while it works. The janitor looks for
// leases that have run out, because their workers hang, and gives these jobs to others.

const (
	leaseTime   = 40 * time.Millisecond
	janitorTime = 25 * time.Millisecond
)

type jobLease struct {
	worker  int
	expires time.Duration
}

// jobQueue hands out jobs.
type jobQueue struct {
	now    func() time.Duration
	ready  *coir.Chan[int]
	mu     *locks.Mutex
	leases map[int]jobLease
	tries  map[int]int
	done   map[int]int
	left   int
	idle   *coir.Event
}

func newJobQueue(now func() time.Duration, jobs, room int) *jobQueue {
	return &jobQueue{
		now: now, ready: coir.NewChan[int](room, coir.WithName("ready")), mu: locks.NewMutex(coir.WithName("queue.mu")),
		leases: map[int]jobLease{}, tries: map[int]int{}, done: map[int]int{}, left: jobs,
		idle: coir.NewEvent(coir.WithName("idle")),
	}
}

// submit adds a job.
func (q *jobQueue) submit(ctx context.Context, job int) error { return q.ready.Send(ctx, job) }

// take waits for a job, and leases it to a worker. It returns false if there will be no more.
func (q *jobQueue) take(ctx context.Context, worker int) (job, try int, ok bool, err error) {
	which, err := coir.Select(ctx, q.ready.RecvCase(&job), q.idle.DoneCase())
	if err != nil || which == 1 {
		return 0, 0, false, err
	}
	if err := q.mu.Lock(ctx); err != nil {
		return 0, 0, false, err
	}
	defer q.mu.Unlock()
	q.tries[job]++
	q.leases[job] = jobLease{worker, q.now() + leaseTime}
	return job, q.tries[job], true, nil
}

// renew extends a lease. It returns false if the worker no longer has it.
func (q *jobQueue) renew(ctx context.Context, worker, job int) (bool, error) {
	if err := q.mu.Lock(ctx); err != nil {
		return false, err
	}
	defer q.mu.Unlock()
	l, ok := q.leases[job]
	if !ok || l.worker != worker {
		return false, nil
	}
	l.expires = q.now() + leaseTime
	q.leases[job] = l
	return true, nil
}

// complete ends a job, if the worker still has its lease.
func (q *jobQueue) complete(ctx context.Context, worker, job int) error {
	if err := q.mu.Lock(ctx); err != nil {
		return err
	}
	defer q.mu.Unlock()
	if l, ok := q.leases[job]; !ok || l.worker != worker {
		return nil
	}
	delete(q.leases, job)
	q.done[job]++
	if q.left--; q.left == 0 {
		q.idle.Set()
	}
	return nil
}

// reclaim makes the jobs whose leases have run out ready again.
func (q *jobQueue) reclaim(ctx context.Context, jobs int) error {
	if err := q.mu.Lock(ctx); err != nil {
		return err
	}
	defer q.mu.Unlock()
	for job := range jobs {
		if l, ok := q.leases[job]; ok && q.now() > l.expires {
			delete(q.leases, job)
			if err := q.ready.Send(ctx, job); err != nil {
				return err
			}
		}
	}
	return nil
}

// jobService is the queue with its workers, two clients, the janitor and a reporter.
func jobService(ctx context.Context, s *Sim) {
	const workers, jobs = 7, 22
	q := newJobQueue(s.Now, jobs, 3)
	progress := coir.NewChan[int](4, coir.WithName("progress"))
	nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
		for i := range 2 {
			n.Go("client", func(ctx context.Context) error {
				for job := i; job < jobs; job += 2 {
					if err := q.submit(ctx, job); err != nil {
						return err
					}
				}
				return nil
			}, coir.WithIndex(i))
		}
		n.Go("janitor", func(ctx context.Context) error {
			tick := pace.NewTicker(janitorTime, coir.WithName("sweep"))
			for {
				which, err := coir.Select(ctx, tick.WaitCase(nil), q.idle.DoneCase())
				if err != nil || which == 1 {
					return err
				}
				if err := q.reclaim(ctx, jobs); err != nil {
					return err
				}
			}
		})
		n.Go("reporter", func(ctx context.Context) error {
			tick := pace.NewTicker(30*time.Millisecond, coir.WithName("report"))
			finished := 0
			for {
				which, err := coir.Select(ctx, tick.WaitCase(nil), progress.RecvCase(nil), q.idle.DoneCase())
				switch {
				case err != nil || which == 2:
					return err
				case which == 1:
					finished++
				}
			}
		})
		for i := range workers {
			n.Go("worker", func(ctx context.Context) error {
				for {
					job, try, ok, err := q.take(ctx, i)
					if err != nil || !ok {
						return err
					}
					if err := work(ctx, s, q, i, job, try); err != nil {
						return err
					}
					_ = progress.TrySend(job)
				}
			}, coir.WithIndex(i))
		}
	})
	for job := range jobs {
		if q.done[job] != 1 {
			s.Errorf("job %d was done %d times", job, q.done[job])
		}
	}
}

// work performs a job in parts, and renews its lease after each. The first attempt at some jobs hangs for a while.
func work(ctx context.Context, s *Sim, q *jobQueue, worker, job, try int) error {
	parts := 1 + job%3
	for range parts {
		pause := 10 * time.Millisecond
		if job%4 == 1 && try == 1 {
			pause = time.Duration(30+10*s.Intn(4)) * time.Millisecond
		}
		if err := coir.Sleep(ctx, pause); err != nil {
			return err
		}
		if mine, err := q.renew(ctx, worker, job); err != nil || !mine {
			return err
		}
	}
	return q.complete(ctx, worker, job)
}
