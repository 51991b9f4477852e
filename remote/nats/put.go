package nats

import (
	"cmp"
	"context"
	"fmt"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/coir-go/coir/remote"
)

// putConfig returns the stream that stores the results of Put: one message for each key.
func (t *Transport) putConfig() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: t.set.prefix + "-put", Subjects: []string{t.subject("p", "*")},
		Storage: jetstream.FileStorage, Replicas: t.set.replicas, Retention: jetstream.LimitsPolicy,
		MaxMsgsPerSubject: 1, MaxAge: t.set.keep,
	}
}

// Put implements [remote.Transport]. A message is stored only if it is the first of its subject.
func (t *Transport) Put(ctx context.Context, key string, data []byte) ([]byte, error) {
	if err := t.readyToPut(ctx); err != nil {
		return nil, err
	}
	m := &client.Msg{
		Subject: t.subject("p", token(key)), Data: data,
		Header: client.Header{jetstream.ExpectedLastSubjSeqHeader: {"0"}},
	}
	switch err := t.store(ctx, m); {
	case isNotFirst(err):
		stored, err := t.Get(ctx, key)
		if err == nil && stored == nil { // another process is about to store it
			err = fmt.Errorf("nats: put %s: %w", key, remote.ErrUnavailable)
		}
		return stored, notSent(err)
	case err != nil:
		return nil, fmt.Errorf("nats: put %s: %w", key, err)
	}
	return data, nil
}

// Get implements [remote.Transport].
func (t *Transport) Get(ctx context.Context, key string) ([]byte, error) {
	if err := t.readyToPut(ctx); err != nil {
		return nil, err
	}
	text, found, err := t.last(ctx, t.putConfig().Name, t.subject("p", token(key)))
	if err != nil {
		return nil, fmt.Errorf("nats: get %s: %w", key, err)
	}
	if !found {
		return nil, nil
	}
	return []byte(text), nil
}

// readyToPut returns an error if the stream cannot be used now, or now promises less than before.
func (t *Transport) readyToPut(ctx context.Context) error {
	t.mu.Lock()
	name := t.putConfig().Name
	wrong := cmp.Or(t.gone[name], t.weak[name])
	t.mu.Unlock()
	if wrong != nil {
		return fmt.Errorf("%w: %w", remote.ErrUnavailable, wrong)
	}
	return notSent(t.openStream(ctx, t.putConfig()))
}
