// Package unique makes numbers that are unique among all processes.
package unique

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"sync/atomic"

	"github.com/coir-go/coir"
)

// Number returns a number that no other call returns: a random one, or in a simulation the next one, so that a schedule
// repeats.
func Number(ctx context.Context) uint64 {
	type last struct{}
	if s := coir.Simulated(ctx); s != nil {
		return s.State(last{}, func() any { return new(atomic.Uint64) }).(*atomic.Uint64).Add(1)
	}
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.BigEndian.Uint64(b[:])
}
