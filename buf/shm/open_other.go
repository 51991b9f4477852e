//go:build !linux

package shm

import (
	"context"
	"errors"
	"fmt"
	"net"
)

func offer(ctx context.Context, s *Sender, conn net.Conn, o settings) error {
	if o.onlyShared {
		return errNotShared
	}
	return offerStream(ctx, s, conn)
}

func accept(ctx context.Context, r *Receiver, conn net.Conn, o settings) error {
	if o.onlyShared {
		return errNotShared
	}
	return acceptStream(ctx, r, conn)
}

var errNotShared = fmt.Errorf("memory is shared on Linux only: %w", errors.ErrUnsupported)
