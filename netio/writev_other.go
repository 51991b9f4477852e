//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package netio

import (
	"context"
	"net"
)

// writev writes the pieces of v one by one, and removes from v what it has written.
func (d *descriptor) writev(ctx context.Context, v *net.Buffers) (int64, error) {
	return writeEach(v, func(p []byte) (int, error) { return d.write(ctx, p, stream) })
}
