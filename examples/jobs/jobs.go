// Package jobs is a job queue. Workers take urgent jobs first, a job that fails is retried later, and each accepted job
// ends with a result or an error.
//
// Each worker has its own connection. A worker that cannot connect, or whose job panics, is restarted; if that happens
// too often, the queue fails. The rate of attempts is limited. A job that waits for its next attempt does not occupy a
// worker.
package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/pace"
	"github.com/coir-go/coir/supervise"
)

var (
	// ErrClosed is returned by Submit when the queue no longer accepts jobs.
	ErrClosed = coir.ErrClosed
	// ErrCrashed is the error of a job that panicked. The job is not retried.
	ErrCrashed = errors.New("jobs: the job has panicked")
	// ErrLost is the error of a job that the queue accepted but never tried.
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
	// Connect opens a worker's connection, and returns the function that performs the worker's jobs.
	Connect func(ctx context.Context) (func(ctx context.Context, job string) (string, error), error)

	Workers  int
	Waiting  int           // how many jobs of each priority may wait for a worker
	Attempts int           // how many times a job is tried
	Backoff  time.Duration // delay before the second attempt; doubles for each further attempt
	Every    time.Duration // average time between attempts, over all workers
	Burst    int           // how many attempts may start at once
	Restarts int           // how many restarts of workers are allowed in a minute
}

// Ticket represents an accepted job. Its Wait returns the result.
type Ticket = coir.Promise[string]

// Queue is a job queue.
type Queue struct {
	Config
	rate   *pace.Limiter
	intake [priorities]*coir.Writer[*job]
	out    [priorities]*coir.Reader[*job]
}

// job is an accepted job. Its writer keeps the queue open until the job has ended, because the job may be queued again.
type job struct {
	text     string
	attempts int
	ticket   *Ticket
	back     *coir.Writer[*job]
}

// end completes the job.
func (j *job) end(result string, err error) {
	defer j.back.Close()
	if err != nil {
		j.ticket.Reject(err)
		return
	}
	j.ticket.Resolve(result)
}

// New makes a queue. The queue accepts jobs at once; they wait until Run is called.
func New(c Config) *Queue {
	q := &Queue{Config: c, rate: pace.NewLimiter(c.Every, c.Burst, coir.WithName("rate"))}
	for p := range q.intake {
		q.intake[p], q.out[p] = coir.Pipe[*job](c.Waiting, coir.WithName(fmt.Sprint("jobs of priority ", p)),
			coir.OnUndelivered(func(j *job) { j.end("", ErrLost) }))
	}
	return q
}

// Submit adds a job. If too many jobs are waiting, Submit waits for room.
func (q *Queue) Submit(ctx context.Context, p Priority, text string) (*Ticket, error) {
	j := &job{text: text, ticket: coir.NewPromise[string](coir.WithName(text)), back: q.intake[p].Clone()}
	if err := j.back.Send(ctx, j); err != nil {
		j.back.Close()
		return nil, err
	}
	return j.ticket, nil
}

// Stop makes the queue refuse new jobs. Run returns when the accepted jobs have ended.
func (q *Queue) Stop() {
	for _, w := range q.intake {
		w.Close()
	}
}

// Run performs the jobs until Stop is called, ctx ends, or workers fail too often. When it returns, every accepted job
// has a result or an error. It may be called only once.
func (q *Queue) Run(ctx context.Context) error {
	for _, r := range q.out {
		defer r.Close()
	}
	defer q.Stop()
	return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		workers := make([]supervise.Child, q.Workers)
		for i := range workers {
			run := func(ctx context.Context) error { return q.work(ctx, n) }
			workers[i] = supervise.Child{Name: fmt.Sprint("worker ", i), Run: run, Restart: supervise.RestartTransient}
		}
		return supervise.New(workers, supervise.WithName("workers"), supervise.WithIntensity(q.Restarts, time.Minute),
			supervise.WithBackoff(q.Backoff, 100*q.Backoff)).Run(ctx)
	})
}

// work performs jobs until there are no more. Jobs that fail wait for their next attempt in fibers of n.
func (q *Queue) work(ctx context.Context, n *coir.Nursery) error {
	do, err := q.Connect(ctx)
	if err != nil {
		return err
	}
	for {
		j, err := q.next(ctx)
		if errors.Is(err, coir.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		if q.try(ctx, do, j) {
			n.Go("retry "+j.text, func(ctx context.Context) error { return q.retry(ctx, j) })
		}
	}
}

// next returns the next job, of the most urgent priority that has one.
func (q *Queue) next(ctx context.Context) (j *job, err error) {
	var cases [priorities]coir.Case
	for p, r := range q.out {
		cases[p] = r.RecvCase(&j)
	}
	for range cases {
		var which int
		which, err = coir.SelectPriority(ctx, cases[:]...)
		if which < 0 || !errors.Is(err, coir.ErrClosed) {
			break
		}
		cases[which] = coir.Case{}
	}
	return j, err
}

// try makes one attempt. It reports whether the job needs another attempt; otherwise the job has ended.
func (q *Queue) try(ctx context.Context, do func(context.Context, string) (string, error), j *job) (again bool) {
	result, err := "", ErrCrashed
	defer func() {
		if !again {
			j.end(result, err)
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

// retry queues the job again after a delay.
func (q *Queue) retry(ctx context.Context, j *job) error {
	backoff := q.Backoff << (j.attempts - 1)
	err := coir.Sleep(ctx, backoff/2+coir.Jitter(ctx, backoff/2))
	if err == nil {
		err = j.back.Send(ctx, j)
	}
	if err != nil {
		j.end("", err)
	}
	return nil
}
