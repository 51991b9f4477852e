//go:build corpus

package corpus

import (
	"sync"
	"testing"
)

// A table is split into three shards. To move keys, the lock of the source is taken first and that of the target
// second. Three moves round the ring can each hold their source and wait for their target, which is the source of the
// next.
//
// Class: abba
// Expect: deadlock

type tableShard struct {
	mu   sync.Mutex
	keys int
}

type shardTable struct {
	shards [3]tableShard
}

func (s *shardTable) move(from, to, n int) {
	src, dst := &s.shards[from], &s.shards[to]
	src.mu.Lock()
	defer src.mu.Unlock()
	dst.mu.Lock()
	defer dst.mu.Unlock()
	src.keys -= n
	dst.keys += n
}

func (s *shardTable) moveFixed(from, to, n int) {
	first, second := &s.shards[min(from, to)], &s.shards[max(from, to)]
	first.mu.Lock()
	defer first.mu.Unlock()
	second.mu.Lock()
	defer second.mu.Unlock()
	s.shards[from].keys -= n
	s.shards[to].keys += n
}

func runShardTable(t *testing.T, move func(s *shardTable, from, to, n int)) {
	s := &shardTable{}
	for i := range s.shards {
		s.shards[i].keys = 10
	}
	var wg sync.WaitGroup
	for i := range s.shards {
		wg.Add(1)
		go func() {
			defer wg.Done()
			move(s, i, (i+1)%len(s.shards), 1+i)
		}()
	}
	wg.Wait()
	want := [...]int{12, 9, 9}
	for i := range s.shards {
		if n := s.shards[i].keys; n != want[i] {
			t.Errorf("shard %d has %d keys, want %d", i, n, want[i])
		}
	}
}

func TestBugShardTable(t *testing.T) {
	runShardTable(t, (*shardTable).move)
}

func TestFixedShardTable(t *testing.T) {
	runShardTable(t, (*shardTable).moveFixed)
}
