package sched

import (
	"sync"
	"sync/atomic"

	"github.com/coir-go/coir/internal/bubble"
	"github.com/coir-go/coir/internal/coro"
)

// The registry finds the task that the calling goroutine runs. It is used only if the context does not identify the
// fiber: for a fiber that uses another fiber's context, or context.Background. Frames are registered when they are
// created, not when they are used, so the cost is small.

const shards = 64

type shard struct {
	mu      sync.Mutex
	n       int
	buckets []*Frame // chains through Frame.chain; a power of two
	_       [24]byte // so that each shard has its own cache line
}

var registry [shards]shard

// sieve counts frames by a part of their hash. A goroutine that runs a frame is included in the count of its hash. So a
// goroutine whose count is 0 runs no frame, and learns that without a lock.
var sieve [1024]atomic.Int32

//go:norace
func sieved(h uint64) *atomic.Int32 { return &sieve[h%uint64(len(sieve))] }

// spread hashes the address of a goroutine. Under coir test all goroutines are in one shard, and the sieve is not used:
// a replayed schedule must take the same locks, even if its goroutines have other addresses and a failed schedule has
// left frames behind.
//
//go:norace
func spread(g uintptr) uint64 {
	h := uint64(g) * 0x9E3779B97F4A7C15 >> 20
	if bubble.Explored != nil {
		h *= shards
	}
	return h
}

//go:norace
func register(fr *Frame) {
	h := spread(fr.g)
	s := &registry[h%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n >= len(s.buckets) {
		s.grow()
	}
	b := &s.buckets[h/shards&uint64(len(s.buckets)-1)]
	fr.chain, *b = *b, fr
	s.n++
	sieved(h).Add(1)
}

//go:norace
func (s *shard) grow() {
	old := s.buckets
	s.buckets = make([]*Frame, max(8, 2*len(old)))
	for _, fr := range old {
		for fr != nil {
			next := fr.chain
			b := &s.buckets[spread(fr.g)/shards&uint64(len(s.buckets)-1)]
			fr.chain, *b = *b, fr
			fr = next
		}
	}
}

//go:norace
func unregister(fr *Frame) {
	h := spread(fr.g)
	s := &registry[h%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := &s.buckets[h/shards&uint64(len(s.buckets)-1)]; *p != nil; p = &(*p).chain {
		if *p == fr {
			*p = fr.chain
			s.n--
			sieved(h).Add(-1)
			return
		}
	}
}

// Current returns the task that the calling goroutine runs, or nil.
//
//go:norace
func Current() *Task {
	g := coro.G()
	h := spread(g)
	if sieved(h).Load() == 0 && bubble.Explored == nil {
		return nil
	}
	return current(g, h)
}

// current implements Current for a goroutine that the sieve does not exclude.
//
//go:noinline
//go:norace
func current(g uintptr, h uint64) *Task {
	s := &registry[h%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n == 0 {
		return nil
	}
	for fr := s.buckets[h/shards&uint64(len(s.buckets)-1)]; fr != nil; fr = fr.chain {
		if fr.g == g {
			return fr.task
		}
	}
	return nil
}
