//go:build corpus

package later

import (
	"sync"
	"testing"
)

// A store moves keys between shards, locking the source shard first and the target shard second. Any two of the
// moves in the test agree on an order, so pairs of movers never block each other. The three together form a ring:
// if each of them has locked its source before any locks its target, none can go on.
//
// Class: abba
// Expect: deadlock
type rebalShard struct {
	mu   sync.Mutex
	keys []int
}

type rebalStore struct {
	shards []*rebalShard
}

func newRebalStore(n int) *rebalStore {
	s := &rebalStore{}
	for i := 0; i < n; i++ {
		s.shards = append(s.shards, &rebalShard{keys: []int{i * 10, i*10 + 1}})
	}
	return s
}

func rebalShift(src, dst *rebalShard) {
	if n := len(src.keys); n > 0 {
		dst.keys = append(dst.keys, src.keys[n-1])
		src.keys = src.keys[:n-1]
	}
}

func (s *rebalStore) Move(from, to int) {
	src, dst := s.shards[from], s.shards[to]
	src.mu.Lock()
	defer src.mu.Unlock()
	dst.mu.Lock()
	defer dst.mu.Unlock()
	rebalShift(src, dst)
}

func (s *rebalStore) MoveOrdered(from, to int) {
	src, dst := s.shards[from], s.shards[to]
	first, second := src, dst
	if to < from {
		first, second = dst, src
	}
	first.mu.Lock()
	defer first.mu.Unlock()
	second.mu.Lock()
	defer second.mu.Unlock()
	rebalShift(src, dst)
}

func (s *rebalStore) Total() int {
	total := 0
	for _, sh := range s.shards {
		sh.mu.Lock()
		total += len(sh.keys)
		sh.mu.Unlock()
	}
	return total
}

func runRebalance(t *testing.T, s *rebalStore, move func(from, to int)) {
	n := len(s.shards)
	want := s.Total()
	var wg sync.WaitGroup
	for i := 0; i < n; i++ {
		wg.Add(1)
		go func(from int) {
			defer wg.Done()
			move(from, (from+1)%n)
		}(i)
	}
	wg.Wait()
	if got := s.Total(); got != want {
		t.Errorf("%d keys after the moves, want %d", got, want)
	}
}

func TestBugRebalance(t *testing.T) {
	s := newRebalStore(3)
	runRebalance(t, s, s.Move)
}

func TestFixedRebalance(t *testing.T) {
	s := newRebalStore(3)
	runRebalance(t, s, s.MoveOrdered)
}
