// Package webhook is an HTTP service for jobs that an external provider performs. It passes a job to the provider
// together with a callback address, waits, and replies to its own client when the provider has called back.
//
// The callback address contains the id of a ticket of package desk. The id cannot be guessed, so no other secret is
// needed, and it can be used once. A provider that calls back too late, twice, or with a made-up id gets an error that
// says which.
package webhook

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/desk"
)

// Config has the parameters of a service.
type Config struct {
	// Start passes a job to the provider, which performs it and calls back with the id. Start returns when the provider
	// has accepted the job.
	Start func(ctx context.Context, job string, id desk.ID) error

	Limit time.Duration // how long to wait for the provider's answer
	Jobs  int           // how many jobs may be waiting at the same time; more are refused
}

// Service waits for the results of jobs.
type Service struct {
	Config
	waiting *desk.Desk[string]
}

// New returns a service.
func New(c Config) *Service {
	jobs := desk.New[string](desk.WithName("jobs"), desk.WithLimit(c.Jobs), desk.WithOverflow(coir.OverflowFail))
	return &Service{c, jobs}
}

// Do passes a job to the provider, and waits for the result.
func (s *Service) Do(ctx context.Context, job string) (string, error) {
	t, err := s.waiting.OpenTimeout(ctx, s.Limit, coir.WithName(job))
	if err != nil {
		return "", err
	}
	defer t.Cancel()
	if err := s.Start(ctx, job, t.ID()); err != nil {
		return "", &StartError{err}
	}
	return t.Wait(ctx)
}

// StartError means that the provider has not accepted the job.
type StartError struct{ Err error }

func (e *StartError) Error() string {
	return "webhook: the provider has not accepted the job: " + e.Err.Error()
}

func (e *StartError) Unwrap() error { return e.Err }

// Callback passes the result of a job to the caller of Do. The id is untrusted text.
func (s *Service) Callback(id, result string) error {
	parsed, err := desk.ParseID(id)
	if err != nil {
		return err
	}
	return s.waiting.Resolve(parsed, result)
}

// Stats returns the figures of the service's desk.
func (s *Service) Stats() desk.Stats { return s.waiting.Stats() }

// maxBody is the largest size of a job or a result, in bytes.
const maxBody = 1 << 20

// Handler serves clients and providers. A client sends a job to POST /jobs, and the response is the result. A provider
// sends the result to POST /callbacks/{id}.
func (s *Service) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /jobs", func(w http.ResponseWriter, r *http.Request) {
		serve(w, r, func(body string) (string, error) { return s.Do(r.Context(), body) })
	})
	mux.HandleFunc("POST /callbacks/{id}", func(w http.ResponseWriter, r *http.Request) {
		serve(w, r, func(body string) (string, error) { return "", s.Callback(r.PathValue("id"), body) })
	})
	return mux
}

func serve(w http.ResponseWriter, r *http.Request, do func(body string) (string, error)) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "the body cannot be read", http.StatusBadRequest)
		return
	}
	text, err := do(string(body))
	if err != nil {
		http.Error(w, err.Error(), status(err))
		return
	}
	_, _ = io.WriteString(w, text) // an error means that the client has left
}

// status returns the HTTP status for an error.
func status(err error) int {
	var start *StartError
	switch {
	case errors.As(err, &start):
		return http.StatusBadGateway
	case errors.Is(err, coir.ErrWouldBlock):
		return http.StatusServiceUnavailable
	case errors.Is(err, coir.ErrTimeout):
		return http.StatusGatewayTimeout
	case errors.Is(err, desk.ErrSyntax):
		return http.StatusBadRequest
	case errors.Is(err, desk.ErrUnknown), errors.Is(err, desk.ErrForeign):
		return http.StatusNotFound
	case errors.Is(err, desk.ErrDuplicate):
		return http.StatusConflict
	case errors.Is(err, desk.ErrLate):
		return http.StatusGone
	}
	return http.StatusInternalServerError
}
