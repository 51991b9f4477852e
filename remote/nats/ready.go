package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
)

// Ready implements [remote.Transport]. The error names the streams that cannot be used now.
func (t *Transport) Ready(ctx context.Context) error {
	if t.life.Err() != nil {
		return fmt.Errorf("nats: the transport was closed: %w", coir.ErrClosed)
	}
	if _, err := t.Lost(); err != nil {
		return fmt.Errorf("nats: %w: %w", remote.ErrUnavailable, err)
	}
	t.mu.Lock()
	names := []string{t.listConfig().Name}
	for name := range t.streams {
		names = append(names, name)
	}
	weak := make([]error, 0, len(t.weak))
	for _, err := range t.weak {
		weak = append(weak, err)
	}
	t.mu.Unlock()
	slices.Sort(names)
	requests, errs := make([]*request, len(names)), make([]error, len(names))
	for i, name := range names {
		requests[i], errs[i] = t.answers.send(&client.Msg{Subject: "$JS.API.STREAM.INFO." + name})
	}
	for i, r := range requests {
		if r != nil {
			errs[i] = r.usable(ctx)
		}
		switch {
		case errors.Is(errs[i], jetstream.ErrStreamNotFound):
			errs[i] = errGone(names[i])
		case errs[i] != nil:
			errs[i] = fmt.Errorf("nats: the stream %s: %w", names[i], errs[i])
		}
	}
	return errors.Join(append(errs, weak...)...)
}

// usable returns an error if the stream that the request asks about cannot be used now.
func (r *request) usable(ctx context.Context) error {
	out, err := r.wait(ctx)
	if err != nil {
		return err
	}
	var info struct {
		Error   *jetstream.APIError
		Cluster *struct{ Leader string }
	}
	switch err := json.Unmarshal(out.Data, &info); {
	case err != nil:
		return fmt.Errorf("the answer cannot be read: %w", err)
	case info.Error != nil:
		return info.Error
	case info.Cluster != nil && info.Cluster.Leader == "":
		return fmt.Errorf("%w: no leader", remote.ErrUnavailable)
	}
	return nil
}
