// Package jobs is a job queue: workers take urgent jobs before others, a job that fails is tried again later, and each
// job that was accepted ends with a result or an error.
//
// Each worker has a connection of its own. A worker whose job panics, or that cannot connect, is started anew; if that
// happens too often the queue fails. Attempts keep a rate. A job that waits for its next attempt holds no worker.
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
	// ErrClosed is returned by Submit when the queue accepts no more jobs.
	ErrClosed = coir.ErrClosed
	// ErrCrashed is the error of a job that panicked. It is not tried again.
	ErrCrashed = errors.New("jobs: the job has panicked")
	// ErrLost is the error of a job that the queue accepted and did not try.
	ErrLost = errors.New("jobs: the queue has ended before the job was tried")
)

// Priority is that of a job.
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
	Attempts int           // that a job has
	Backoff  time.Duration // before the second attempt; it doubles with each
	Every    time.Duration // the distance of two attempts, of all workers
	Burst    int           // attempts that may follow each other without it
	Restarts int           // of workers, within a minute
}

// Ticket stands for a job that was accepted. Its Wait returns the result.
type Ticket = coir.Promise[string]

// Queue is a job queue.
type Queue struct {
	Config
	rate   *pace.Limiter
	intake [priorities]*coir.Writer[*job]
	out    [priorities]*coir.Reader[*job]
}

// job is a job that was accepted. Its writer keeps the queue open until the job has ended, since it may come back.
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

// New makes a queue. It accepts jobs, which wait for Run.
func New(c Config) *Queue {
	q := &Queue{Config: c, rate: pace.NewLimiter(c.Every, c.Burst, coir.WithName("rate"))}
	for p := range q.intake {
		q.intake[p], q.out[p] = coir.Pipe[*job](c.Waiting, coir.WithName(fmt.Sprint("jobs of priority ", p)),
			coir.OnUndelivered(func(j *job) { j.end("", ErrLost) }))
	}
	return q
}

// Submit adds a job. While too many wait, it waits too.
func (q *Queue) Submit(ctx context.Context, p Priority, text string) (*Ticket, error) {
	j := &job{text: text, ticket: coir.NewPromise[string](coir.WithName(text)), back: q.intake[p].Clone()}
	if err := j.back.Send(ctx, j); err != nil {
		j.back.Close()
		return nil, err
	}
	return j.ticket, nil
}

// Stop ends the intake. Run returns when the accepted jobs have ended.
func (q *Queue) Stop() {
	for _, w := range q.intake {
		w.Close()
	}
}

// Run does the jobs until Stop, or until ctx ends or workers fail too often. Then no accepted job is left without a
// result or an error. It may be called once.
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

// work does jobs until there are no more. Those that fail wait in n for their next attempt.
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

// next returns the next job, an urgent one if there is one.
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

// try makes an attempt. It reports whether the job needs another one; otherwise the job has ended.
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

// retry queues a job again after a while.
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
