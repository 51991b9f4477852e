// Package jobs is examples/jobs with goroutines, channels and errgroup.
//
// Each worker has a connection of its own. A worker is restarted if its job panics, or if it cannot connect; if that
// happens too often, the queue fails. Attempts keep a rate. A job that waits for its next attempt holds no worker.
package jobs

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
)

var (
	// ErrClosed is returned by Submit when the queue accepts no more jobs.
	ErrClosed = errors.New("jobs: the queue is closed")
	// ErrCrashed is the error of a job that panicked. It is not tried again.
	ErrCrashed = errors.New("jobs: the job has panicked")
	// ErrLost is the error of a job that the queue accepted and did not try.
	ErrLost = errors.New("jobs: the queue has ended before the job was tried")
)

// Priority is the priority of a job.
type Priority int

// The priorities, the most urgent first.
const (
	Urgent Priority = iota
	Normal
	priorities
)

// Config has the parameters of a queue.
type Config struct {
	// Connect returns the function that does the jobs of a worker.
	Connect func(ctx context.Context) (func(ctx context.Context, job string) (string, error), error)

	Workers  int
	Waiting  int           // jobs of each priority that wait for a worker
	Attempts int           // the number of attempts for a job
	Backoff  time.Duration // before the second attempt; it doubles with each
	Every    time.Duration // the time between two attempts, over all workers
	Burst    int           // attempts that may be made without that pause
	Restarts int           // of workers, within a minute
}

// Ticket represents an accepted job.
type Ticket struct {
	done   chan struct{} // closed when the job has ended; guards the fields below
	result string
	err    error
}

// Wait waits for the end of the job, and returns its result.
func (t *Ticket) Wait(ctx context.Context) (string, error) {
	select {
	case <-t.done:
		return t.result, t.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// Queue is a job queue.
type Queue struct {
	Config
	rate  *rate.Limiter
	jobs  [priorities]chan *job
	ended chan struct{} // closed when Run takes no more jobs

	mu      sync.Mutex // guards the fields below
	stopped bool
	open    int           // jobs that have not ended, and calls of Submit that wait
	drained chan struct{} // closed when stopped and none is open

	restarts []time.Time // of workers; also guarded by mu
}

// job is an accepted job.
type job struct {
	text     string
	priority Priority
	attempts int
	ticket   *Ticket
}

// end completes a job.
func (q *Queue) end(j *job, result string, err error) {
	j.ticket.result, j.ticket.err = result, err
	close(j.ticket.done)
	q.leave()
}

// New makes a queue. It accepts jobs, which wait for Run.
func New(c Config) *Queue {
	q := &Queue{
		Config: c, rate: rate.NewLimiter(rate.Every(c.Every), c.Burst),
		ended: make(chan struct{}), drained: make(chan struct{}),
	}
	for p := range q.jobs {
		q.jobs[p] = make(chan *job, c.Waiting)
	}
	return q
}

// Submit adds a job. While too many wait, it waits too.
func (q *Queue) Submit(ctx context.Context, p Priority, text string) (*Ticket, error) {
	if !q.enter() {
		return nil, ErrClosed
	}
	j := &job{text: text, priority: p, ticket: &Ticket{done: make(chan struct{})}}
	select {
	case q.jobs[p] <- j:
		return j.ticket, nil
	case <-q.ended:
		q.leave()
		return nil, ErrClosed
	case <-ctx.Done():
		q.leave()
		return nil, ctx.Err()
	}
}

// enter counts a user of the channels. It reports false if the queue is stopped.
func (q *Queue) enter() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.stopped {
		q.open++
	}
	return !q.stopped
}

// leave undoes enter.
func (q *Queue) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open--
	if q.stopped && q.open == 0 {
		close(q.drained)
	}
}

// Stop makes the queue refuse new jobs. Run returns when the accepted jobs have ended.
func (q *Queue) Stop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.stopped && q.open == 0 {
		close(q.drained)
	}
	q.stopped = true
}

// Run does the jobs until Stop, or until ctx ends or workers fail too often. Then no accepted job is left without a
// result or an error. It may be called once.
func (q *Queue) Run(ctx context.Context) error {
	defer q.abandon()
	eg, ctx := errgroup.WithContext(ctx)
	for i := range q.Workers {
		eg.Go(func() error {
			return q.supervise(ctx, fmt.Sprint("worker ", i), func() error { return q.work(ctx, eg) })
		})
	}
	return eg.Wait()
}

// abandon ends the jobs that no worker will take.
func (q *Queue) abandon() {
	q.Stop()
	close(q.ended)
	for {
		select {
		case j := <-q.jobs[Urgent]:
			q.end(j, "", ErrLost)
		case j := <-q.jobs[Normal]:
			q.end(j, "", ErrLost)
		case <-q.drained:
			return
		}
	}
}

// supervise calls work until it returns nil, ctx ends, or there are too many restarts. It waits before a restart,
// longer after each failure in a row.
func (q *Queue) supervise(ctx context.Context, name string, work func() error) error {
	longest := 100 * q.Backoff
	backoff := q.Backoff
	for {
		began := time.Now()
		err := recovered(work)
		if err == nil || ctx.Err() != nil {
			return err
		}
		if !q.mayRestart() {
			return fmt.Errorf("%s: given up after %d restarts: %w", name, q.Restarts, err)
		}
		if time.Since(began) > longest {
			backoff = q.Backoff
		}
		if err := sleep(ctx, backoff); err != nil {
			return err
		}
		backoff = min(2*backoff, longest)
	}
}

// mayRestart counts a restart, and reports whether there were few enough within the last minute.
func (q *Queue) mayRestart() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	for len(q.restarts) > 0 && now.Sub(q.restarts[0]) > time.Minute {
		q.restarts = q.restarts[1:]
	}
	q.restarts = append(q.restarts, now)
	return len(q.restarts) <= q.Restarts
}

// recovered calls fn, and returns its panic as an error.
func recovered(fn func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	return fn()
}

// sleep waits between half of d and d.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d/2 + rand.N(d/2+1))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// work does jobs until there are no more. Those that fail wait in eg for their next attempt.
func (q *Queue) work(ctx context.Context, eg *errgroup.Group) error {
	do, err := q.Connect(ctx)
	if err != nil {
		return err
	}
	for {
		j, err := q.next(ctx)
		if errors.Is(err, ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		if q.try(ctx, do, j) {
			eg.Go(func() error { return q.retry(ctx, j) })
		}
	}
}

// next returns the next job, an urgent one if there is one.
func (q *Queue) next(ctx context.Context) (*job, error) {
	if ctx.Err() != nil { // a select would take any of its cases
		return nil, ctx.Err()
	}
	select {
	case j := <-q.jobs[Urgent]:
		return j, nil
	default:
	}
	select {
	case j := <-q.jobs[Urgent]:
		return j, nil
	case j := <-q.jobs[Normal]:
		return j, nil
	case <-q.drained:
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// try makes an attempt. It reports whether the job needs another one; otherwise the job has ended.
func (q *Queue) try(ctx context.Context, do func(context.Context, string) (string, error), j *job) (again bool) {
	result, err := "", ErrCrashed
	defer func() {
		if !again {
			q.end(j, result, err)
		}
	}()
	if e := q.rate.Wait(ctx); e != nil {
		err = e
		return false
	}
	j.attempts++
	result, err = do(ctx, j.text)
	return err != nil && j.attempts < q.Attempts && ctx.Err() == nil
}

// retry queues a job again after a while.
func (q *Queue) retry(ctx context.Context, j *job) error {
	if err := sleep(ctx, q.Backoff<<(j.attempts-1)); err != nil {
		q.end(j, "", err)
		return nil
	}
	select {
	case q.jobs[j.priority] <- j:
	case <-ctx.Done():
		q.end(j, "", ctx.Err())
	}
	return nil
}
