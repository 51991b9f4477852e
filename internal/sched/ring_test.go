package sched

// The tests compare a worker's ring with a slice, from starting points that make its places and its counters wrap. With
// thieves, each task must come out exactly once.

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

func tasks(n int) []*Task {
	all := make([]Task, n)
	ts := make([]*Task, n)
	for i := range ts {
		ts[i] = &all[i]
	}
	return ts
}

// ringAt returns an empty ring whose counters are at n.
func ringAt(n uint32) *ring {
	r := new(ring)
	r.word.Store(uint64(uint16(n))<<16 | uint64(uint16(n)))
	return r
}

// Spec: SC-04 (local run queues have 256 places)
// Spec: SC-15 (a thief takes half)
func TestRingAgainstSlice(t *testing.T) {
	for _, start := range []uint32{0, ringSize - 3, math.MaxUint32 - 100} {
		t.Run(fmt.Sprint(start), func(t *testing.T) {
			seed := rand.Uint64()
			rnd := rand.New(rand.NewPCG(seed, 0))
			r, model := ringAt(start), []*Task(nil)
			fresh := tasks(20_000)
			into := make([]*Task, ringSize/2)
			bias := 2 // this many of 4 steps are pushes; it changes, so that the ring fills and empties
			full, emptied := 0, 0
			for step := range fresh {
				if step%2000 == 0 {
					bias = 5 - bias
				}
				switch k := rnd.IntN(8); {
				case k < 2*bias:
					ok := r.push(fresh[step])
					if ok != (len(model) < ringSize) {
						t.Fatalf("seed %d, step %d: push %v with %d inside", seed, step, ok, len(model))
					}
					if ok {
						model = append(model, fresh[step])
					} else {
						full++
					}
				case k < 7 || rnd.IntN(20) > 0:
					var want *Task
					if len(model) > 0 {
						want, model = model[0], model[1:]
					} else {
						emptied++
					}
					if got := r.pop(); got != want {
						t.Fatalf("seed %d, step %d: popped %p, want %p", seed, step, got, want)
					}
				default:
					room := rnd.IntN(len(into) + 1)
					want := min((len(model)+1)/2, room)
					n := r.grab(into[:room])
					if n != want || !slices.Equal(into[:n], model[:n]) {
						t.Fatalf("seed %d, step %d: grabbed %d of %d with room for %d, want %d and the oldest", seed, step, n, len(model), room, want)
					}
					model = model[n:]
				}
				if r.len() != len(model) {
					t.Fatalf("seed %d, step %d: len %d, want %d", seed, step, r.len(), len(model))
				}
			}
			t.Logf("full %d times, empty %d times", full, emptied)
		})
	}
}

// The worker pushes and pops, thieves grab: nothing is lost and nothing comes out twice.
//
// Spec: SC-10 (a queue gives each entry to one taker)
func TestRingWithThieves(t *testing.T) {
	const thieves = 3
	total := 200_000
	if testing.Short() {
		total = 40_000
	}
	r := ringAt(math.MaxUint32 - uint32(total/2))
	ts := tasks(total)
	index := make(map[*Task]int, total)
	for i, task := range ts {
		index[task] = i
	}
	taken := make([]atomic.Int32, total)
	var stolen atomic.Int64
	var done atomic.Bool
	var all sync.WaitGroup
	for range thieves {
		all.Go(func() {
			loot := make([]*Task, ringSize/2)
			for !done.Load() {
				n := r.grab(loot)
				for _, task := range loot[:n] {
					taken[index[task]].Add(1)
				}
				stolen.Add(int64(n))
				runtime.Gosched()
			}
		})
	}
	take := func() bool {
		task := r.pop()
		if task != nil {
			taken[index[task]].Add(1)
		}
		return task != nil
	}
	for i, task := range ts {
		for !r.push(task) {
			take()
		}
		if i%3 == 0 {
			take()
		}
	}
	for take() {
	}
	done.Store(true)
	all.Wait()
	for i := range taken {
		if n := taken[i].Load(); n != 1 {
			t.Fatalf("task %d came out %d times", i, n)
		}
	}
	t.Logf("%d of %d were stolen", stolen.Load(), total)
}

// The run-next place, with one worker that puts and takes and thieves that take: each task comes out exactly once.
//
// Spec: SC-10 (a queue gives each entry to one taker)
func TestNextWithThieves(t *testing.T) {
	total := 100_000
	if testing.Short() {
		total = 20_000
	}
	var place runNext
	ts := tasks(total)
	index := make(map[*Task]int, total)
	for i, task := range ts {
		index[task] = i
	}
	taken := make([]atomic.Int32, total)
	count := func(task *Task) {
		if task != nil {
			taken[index[task]].Add(1)
		}
	}
	var done atomic.Bool
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			for !done.Load() {
				count(place.take())
				runtime.Gosched()
			}
		})
	}
	for i, task := range ts {
		count(place.put(task)) // the putter gets the replaced task
		if i%3 == 0 {
			count(place.take())
		}
	}
	count(place.take())
	done.Store(true)
	all.Wait()
	if !place.empty() {
		t.Error("not empty")
	}
	for i := range taken {
		if n := taken[i].Load(); n != 1 {
			t.Fatalf("task %d came out %d times", i, n)
		}
	}
}
