package nats_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/soak"
	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/nats"
)

// There are more channels of one capacity than one consumer can have. A channel without a receiver holds its sender at
// exactly the bound, and each channel is received from when a receiver begins. With COIR_SOAK=1 there are 100,000
// channels.
func TestManyChannels(t *testing.T) {
	const capacity, full = 2, 600 // the first full channels are filled; the others have one value
	channels := full
	if soak.On() {
		channels = 100_000
	}
	s := single(t, false)
	opts := []nats.Option{nats.WithReplicas(1), nats.WithLease(time.Minute)}
	a, b := transport(t, connect(t, s), opts...), transport(t, connect(t, s), opts...)
	open := func(ctx context.Context, n *coir.Nursery, tr remote.Transport, i int) (*remote.Chan[int], error) {
		name := "channel" + strconv.Itoa(i)
		return remote.Durable[int](ctx, n, tr, name, capacity, remote.WithMeaning(remote.MeaningStored))
	}
	before := memory()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		ends := make([]*remote.Chan[int], channels)
		err := inEach(ctx, channels, func(fiber context.Context, i int) (err error) {
			if ends[i], err = open(ctx, n, a, i); err == nil && i >= full {
				err = ends[i].Send(fiber, 0)
			}
			return err
		})
		if err != nil {
			return err
		}
		for i, c := range ends[:full] {
			n.Go("sender", func(ctx context.Context) error {
				defer c.Leave()
				for v := range capacity + 1 {
					if err := c.Send(ctx, v); err != nil {
						return err
					}
				}
				return nil
			}, coir.WithIndex(i))
		}
		for i, c := range ends[:full] { // the send that does not fit is refused
			for st := c.Stats(); st.Refused == 0 || st.Sent != capacity; st = c.Stats() {
				if st.Sent > capacity {
					return fmt.Errorf("the channel %d has %d values", i, st.Sent)
				}
				if err := coir.Sleep(ctx, time.Millisecond); err != nil {
					return err
				}
			}
		}
		t.Logf("%d channels: %d bytes of memory each, in the server and the sending client",
			channels, (memory()-before)/channels)
		return inEach(ctx, channels, func(fiber context.Context, i int) error {
			c, err := open(ctx, n, b, i)
			if err != nil {
				return err
			}
			defer c.Leave()
			if i < full {
				return receive(fiber, c, capacity+1)
			}
			defer ends[i].Leave()
			return receive(fiber, c, 1)
		})
	})
	if err != nil {
		t.Error(err)
	}
}

// inEach calls f with the numbers below n, in 1000 fibers. If many more begin at the same time, a small machine needs
// longer than the window for repeated messages. If few do, the queues with messages get more consumers than NATS
// allows.
func inEach(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	var next atomic.Int64
	return coir.Run(ctx, func(_ context.Context, in *coir.Nursery) error {
		for range 1000 {
			in.Go("some", func(ctx context.Context) error {
				for i := int(next.Add(1) - 1); i < n; i = int(next.Add(1) - 1) {
					if err := f(ctx, i); err != nil {
						return err
					}
				}
				return nil
			})
		}
		return nil
	})
}

// receive receives and removes the values from 0 to n. They arrive in this order, unless one is delivered again.
func receive(ctx context.Context, c *remote.Chan[int], n int) error {
	var got []int
	again := false
	for range n {
		it, err := c.Recv(ctx)
		if err != nil {
			return err
		}
		got, again = append(got, it.Value), again || it.Tries > 1
		if err := it.Ack(ctx); err != nil {
			return err
		}
	}
	came := slices.Clone(got)
	slices.Sort(got)
	for i, v := range got {
		if v != i || !again && came[i] != i {
			return fmt.Errorf("%v has %v", c, came)
		}
	}
	return nil
}

// memory returns the bytes of the heap and the stacks.
func memory() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}
