package main

import (
	"context"
	"runtime"
	"sync"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/bench/internal/timing"
	"github.com/coir-go/coir/buf"
)

// Buffers with one owner are compared with slices.
//
// A slice that is sent through a channel is not copied either. But it must be copied if the sender continues to use it,
// or gets it back for the next message. Then a Buf is passed on instead, and the sender gets another one from the pool.
// Both sides write one byte of each block and read it at the other end.

const block = 64 << 10

// newBuffers returns a pool of count buffers, and a function that closes its region.
func newBuffers(size, count int, opts ...buf.Option) (*buf.Pool, func()) {
	r, err := buf.NewRegion(size*count, opts...)
	if err != nil {
		panic(err)
	}
	p, err := buf.NewPool(r, size, count)
	if err != nil {
		panic(err)
	}
	return p, func() {
		if err := r.Close(); err != nil {
			panic(err)
		}
	}
}

func bufferMoved() side {
	p, end := newBuffers(block, 8)
	s := onRuntime(func(_ context.Context, nur *coir.Nursery, n int) error {
		c := buf.NewChan(4)
		nur.Go("receiver", func(ctx context.Context) error {
			for b, err := range c.All(ctx) {
				if err != nil {
					return err
				}
				guarded[0] += int(b.Bytes()[0])
				b.Release()
			}
			return nil
		})
		nur.Go("sender", func(ctx context.Context) error {
			defer c.Close()
			for i := range n {
				b, err := p.Get(ctx)
				if err != nil {
					return err
				}
				b = b.Slice(0, block)
				b.Bytes()[0] = byte(i)
				if err := c.Send(ctx, b); err != nil {
					return err
				}
			}
			return nil
		})
		return nil
	})
	stop := s.close
	s.close = func() { stop(); end() }
	return s
}

// sliceSent sends a slice from a sync.Pool, into which it may copy what it sends.
func sliceSent(copied bool) func() side {
	return func() side { return sliceSide(copied) }
}

func sliceSide(copied bool) side {
	return onRuntime(func(_ context.Context, nur *coir.Nursery, n int) error {
		pool := sync.Pool{New: func() any { b := make([]byte, block); return &b }}
		c := coir.NewChan[*[]byte](4)
		nur.Go("receiver", func(ctx context.Context) error {
			for b, err := range c.All(ctx) {
				if err != nil {
					return err
				}
				guarded[0] += int((*b)[0])
				pool.Put(b)
			}
			return nil
		})
		nur.Go("sender", func(ctx context.Context) error {
			defer c.Close()
			mine := make([]byte, block)
			for i := range n {
				b := pool.Get().(*[]byte)
				if copied {
					mine[0] = byte(i)
					copy(*b, mine)
				} else {
					(*b)[0] = byte(i)
				}
				if err := c.Send(ctx, b); err != nil {
					return err
				}
			}
			return nil
		})
		return nil
	})
}

// bufferGet has k fibers get buffers and release them.
func bufferGet(k int) func() side {
	return func() side {
		p, end := newBuffers(1<<10, 64)
		s := fibersDo(k, func(ctx context.Context, n int) error {
			for range n {
				b, err := p.Get(ctx)
				if err != nil {
					return err
				}
				b.Release()
			}
			return nil
		})()
		stop := s.close
		s.close = func() { stop(); end() }
		return s
	}
}

var (
	slicePool   = sync.Pool{New: func() any { return make([]byte, 1<<10) }}
	pointerPool = sync.Pool{New: func() any { b := make([]byte, 1<<10); return &b }}
)

func getSlices(n int) {
	for range n {
		b := slicePool.Get().([]byte)
		slicePool.Put(b) //nolint:staticcheck // it allocates, and is what programs do
	}
}

func getPointers(n int) {
	for range n {
		b := pointerPool.Get().(*[]byte)
		pointerPool.Put(b)
	}
}

// The cost of a garbage collection with a million live buffers. Each measurement has a process of its own, so that the
// collector does not see the other side's buffers.

const (
	collectedChild = "collected/"
	collections    = 10
)

func collectedIn(kind string) func() side {
	return func() side {
		return side{measure: func() sample {
			var s sample
			if err := callSelf(&s, "-child", collectedChild+kind); err != nil {
				panic("collected " + kind + ": " + err.Error())
			}
			return s
		}}
	}
}

// collectedMain is the main function of such a process.
func collectedMain(kind string) sample {
	const many, size = 1_000_000, 1 << 10
	var live any
	switch kind {
	case "slices":
		all := make([][]byte, many)
		for i := range all {
			all[i] = make([]byte, size)
		}
		live = all
	case "off":
		live = getAll(newBuffers(size, many))
	case "on":
		live = getAll(newBuffers(size, many, buf.WithHeap()))
	default:
		panic("unknown kind of buffer: " + kind)
	}
	runtime.GC()
	before := timing.Now(true)
	for range collections { // the process does nothing else
		runtime.GC()
	}
	took := timing.Now(true) - before
	runtime.KeepAlive(live)
	return sample{Cost: float64(took.Nanoseconds()) / 1e3 / collections}
}

// getAll takes all buffers of a pool, which stay in use until the process ends.
func getAll(p *buf.Pool, _ func()) []buf.Buf {
	all := make([]buf.Buf, p.Cap())
	for i := range all {
		b, err := p.TryGet()
		if err != nil {
			panic(err)
		}
		all[i] = b.Slice(0, p.Size())
		all[i].Bytes()[0] = 1
	}
	return all
}
