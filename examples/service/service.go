package main

import (
	"context"
	"errors"
	"time"

	"github.com/coir-go/coir"
)

var (
	// ErrBusy is returned to a client if the queue is full for too long.
	ErrBusy = errors.New("service: busy")
	// ErrLost is returned to a client whose request was accepted but will not be answered. It may have had an effect.
	ErrLost = errors.New("service: the request was lost")
)

// Backend handles a request under the given configuration. Its errors go to the client; if it panics, the worker is
// restarted.
type Backend func(ctx context.Context, config, job string) (string, error)

// Service answers requests with a few workers.
type Service struct {
	Settings
	queue   *coir.Chan[request]
	workers []*worker
}

// Settings are the parameters of a service.
type Settings struct {
	Workers   int
	Queue     int                                        // requests that wait for a worker
	Admission time.Duration                              // how long a client waits for room in the queue
	Patience  time.Duration                              // how long a request may take
	Connect   func(ctx context.Context) (Backend, error) // each worker has its own backend
	Every     time.Duration                              // time between reports
	Report    func(waiting int)
}

// request is on its way to a worker. Its holder, the queue or the worker that received it, closes reply.
type request struct {
	job   string
	reply *coir.Chan[answer]
}

type answer struct {
	text string
	err  error
}

// New makes a service that has not started.
func New(set Settings) *Service {
	s := &Service{Settings: set}
	s.queue = coir.NewChan[request](set.Queue, coir.WithName("queue"),
		coir.OnUndelivered(func(r request) { r.reply.Close() }))
	for range set.Workers {
		w := &worker{Service: s, configs: coir.NewChan[string](coir.Conflated, coir.WithName("config"))}
		s.workers = append(s.workers, w)
	}
	return s
}

// Do sends a request and returns its answer. Fibers and goroutines may call it.
func (s *Service) Do(ctx context.Context, job string) (string, error) {
	r := request{job: job, reply: coir.NewChan[answer](1, coir.WithName("reply"))}
	err := s.queue.SendTimeout(ctx, r, s.Admission)
	if errors.Is(err, coir.ErrTimeout) && ctx.Err() == nil {
		return "", ErrBusy // the queue was full; ctx has not ended
	}
	if err != nil {
		return "", err
	}
	a, err := r.reply.Recv(ctx)
	if errors.Is(err, coir.ErrClosed) {
		return "", ErrLost
	}
	if err != nil {
		return "", err
	}
	return a.text, a.err
}

// Configure sets the configuration. Later requests are answered under this configuration, or a newer one.
func (s *Service) Configure(config string) {
	for _, w := range s.workers {
		_ = w.configs.TrySend(config) // never full, never closed
	}
}

// worker is the state that survives a restart.
type worker struct {
	*Service
	configs *coir.Chan[string] // only this worker receives from it
	config  string             // the current configuration
}

// work answers requests until there are no more.
func (w *worker) work(ctx context.Context) error {
	backend, err := w.Connect(ctx)
	if err != nil {
		return err
	}
	for {
		var r request
		which, err := coir.SelectPriority(ctx, w.configs.RecvCase(&w.config), w.queue.RecvCase(&r))
		switch {
		case which < 0:
			return err // ctx was cancelled
		case err != nil:
			return nil // the queue is closed and empty
		case which == 1:
			w.answer(ctx, backend, r)
		}
	}
}

// answer answers one request within the time limit.
func (w *worker) answer(ctx context.Context, backend Backend, r request) {
	defer r.reply.Close() // even if the backend panics
	ctx, cancel := coir.WithTimeout(ctx, w.Patience)
	defer cancel()
	text, err := backend(ctx, w.config, r.job)
	_ = r.reply.TrySend(answer{text, err}) // there is room, even if the client has left
}

// Run serves until Stop, and returns nil once the accepted requests have been answered. If ctx is cancelled or a worker
// is given up, Run ends early and returns that error.
func (s *Service) Run(ctx context.Context) error {
	defer s.queue.Abort(nil) // nothing receives from the queue any longer
	return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		n.Go("report", s.report)
		err := coir.Run(ctx, func(_ context.Context, crew *coir.Nursery) error {
			for i, w := range s.workers {
				crew.Go("supervisor", func(ctx context.Context) error {
					return supervise(ctx, "worker", w.work)
				}, coir.WithIndex(i))
			}
			return nil
		})
		n.Cancel(nil) // the workers have ended: stop the other fibers
		return err
	})
}

// report runs until it is cancelled, which is not an error.
func (s *Service) report(ctx context.Context) error {
	for coir.Sleep(ctx, s.Every) == nil {
		s.Report(s.queue.Len())
	}
	return nil
}

// Stop makes the service refuse new requests, and end when it has answered those that it accepted.
func (s *Service) Stop() { s.queue.Close() }
