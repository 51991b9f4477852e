package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	client "github.com/nats-io/nats.go"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/inspect"
	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/nats"
	"github.com/coir-go/coir/remote/ticket"
)

// receipt is the provider's answer.
type receipt struct{ Number string }

// result is the result of a payment. A promise stores it, so that every replica can read it later.
type result struct {
	Paid   bool
	Number string `json:",omitempty"`
}

// shop is a replica.
type shop struct {
	transport remote.Transport
	tickets   *ticket.Desk[receipt]
	limit     time.Duration
}

// replica runs a replica until its standard input ends.
func replica(ctx context.Context, broker string, limit time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	secret, err := hex.DecodeString(os.Getenv("PAYMENTS_KEY"))
	if err != nil {
		return err
	}
	keys, err := ticket.NewKeys(1, secret)
	if err != nil {
		return err
	}
	nc, err := client.Connect(broker, nats.Options()...)
	if err != nil {
		return err
	}
	defer nc.Close()
	t, err := nats.New(ctx, nc, nats.WithReplicas(1))
	if err != nil {
		return err
	}
	defer t.Close()
	return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		d, err := ticket.New[receipt](ctx, n, t, "payments/callbacks", keys)
		if err != nil {
			return err
		}
		s := &shop{t, d, limit}
		mux := http.NewServeMux()
		mux.HandleFunc("POST /payments/{id}", s.pay)
		mux.HandleFunc("GET /payments/{id}", s.look)
		mux.HandleFunc("POST /callbacks", s.called)
		mux.Handle("/debug/coir/", inspect.Handler())
		address, err := serve(n, "http", mux)
		if err != nil {
			return err
		}
		fmt.Println(address)
		return nil
	})
}

// pay makes a payment: it asks the provider, whose address is in the request, and waits for the callback.
func (s *shop) pay(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	t, err := s.tickets.Open(r.Context(), s.limit, coir.WithName("payment "+id))
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer t.Cancel()
	ask, err := http.NewRequestWithContext(r.Context(), http.MethodPost, r.Header.Get("Provider")+"/"+id, nil)
	if err == nil {
		ask.Header.Set("Token", t.Token(ticket.RightResolve).Reveal())
		var resp *http.Response
		if resp, err = http.DefaultClient.Do(ask); err == nil {
			_ = resp.Body.Close()
		}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	got, err := t.Wait(r.Context())
	p, made := s.promise(id)
	if made == nil {
		_, made = p.Resolve(r.Context(), result{err == nil, got.Number}) // the first result of a payment counts
	}
	if made != nil {
		http.Error(w, made.Error(), http.StatusServiceUnavailable)
		return
	}
	s.look(w, r)
}

func (s *shop) promise(id string) (*remote.Promise[result], error) {
	return remote.NewPromise[result](s.transport, "payment "+id, remote.WithMeaning(remote.MeaningStored))
}

// look answers with the result of a payment, at any replica.
func (s *shop) look(w http.ResponseWriter, r *http.Request) {
	p, err := s.promise(r.PathValue("id"))
	if err == nil {
		var v result
		if v, err = p.Wait(r.Context()); err == nil {
			err = json.NewEncoder(w).Encode(v)
		}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
}

// called is the provider's callback.
func (s *shop) called(w http.ResponseWriter, r *http.Request) {
	var v receipt
	token, err := ticket.ParseToken(r.Header.Get("Token"))
	if err == nil {
		err = json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&v)
	}
	outcome := ticket.OutcomeNone
	if err == nil {
		outcome, err = s.tickets.Resolve(r.Context(), token, r.Header.Get("Event"), v)
	}
	switch {
	case outcome == ticket.OutcomeStored:
		w.WriteHeader(http.StatusAccepted)
	case err == nil:
	case errors.Is(err, remote.ErrUnknown), errors.Is(err, remote.ErrFull): // the provider calls again
		w.WriteHeader(http.StatusServiceUnavailable)
	case errors.Is(err, ticket.ErrToken):
		w.WriteHeader(http.StatusForbidden)
	case errors.Is(err, ticket.ErrEnded), errors.Is(err, ticket.ErrExpired):
		w.WriteHeader(http.StatusGone)
	default:
		w.WriteHeader(http.StatusBadRequest)
	}
	_, _ = io.WriteString(w, outcome.String()) // the provider may have left
}
