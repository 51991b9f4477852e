package nats_test

// The code of docs/guide/remote.md. It is compiled and not run.

import (
	"context"

	client "github.com/nats-io/nats.go"

	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/nats"
)

func withOneServer(ctx context.Context, use func(t remote.Transport) error) error {
	nc, err := client.Connect("nats://localhost:4222", nats.Options()...) // package github.com/nats-io/nats.go
	if err != nil {
		return err
	}
	transport, err := nats.New(ctx, nc, nats.WithReplicas(1)) // and WithMeaning(remote.MeaningStored) for its channels
	if err != nil {
		return err
	}
	defer transport.Close()
	return use(transport)
}

var _ = withOneServer
