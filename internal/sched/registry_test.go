package sched

// The registry of frames finds the task of the calling goroutine among many, and forgets frames that have left. The
// pool of resting frames returns the frames that were put into it.

import (
	"testing"

	"github.com/coir-go/coir/internal/coro"
)

func TestRegistryFindsTheCaller(t *testing.T) {
	if Current() != nil {
		t.Fatal("a goroutine that is no frame's has a task")
	}
	mine := &Frame{g: coro.G(), task: new(Task)}
	register(mine)
	// There are enough other frames to make each shard grow several times. No goroutine has such a high odd address.
	others := make([]Frame, 20_000)
	for i := range others {
		others[i].g = ^uintptr(0) - 2*uintptr(i)
		register(&others[i])
	}
	if Current() != mine.task {
		t.Fatal("not found among many")
	}
	count := 0
	for i := range registry {
		s := &registry[i]
		s.mu.Lock()
		inside := 0
		for j, fr := range s.buckets {
			for ; fr != nil; fr = fr.chain {
				inside++
				if h := spread(fr.g); h%shards != uint64(i) || h/shards&uint64(len(s.buckets)-1) != uint64(j) {
					t.Errorf("a frame is in the wrong chain")
				}
			}
		}
		if inside != s.n {
			t.Errorf("shard %d holds %d and says %d", i, inside, s.n)
		}
		count += inside
		s.mu.Unlock()
	}
	if count < len(others)+1 {
		t.Fatalf("%d registered, %d found", len(others)+1, count)
	}
	for i := range others {
		if i%2 == 0 {
			unregister(&others[i])
		}
	}
	if Current() != mine.task {
		t.Fatal("lost when others left")
	}
	other := make(chan *Task)
	go func() { other <- Current() }()
	if <-other != nil {
		t.Fatal("another goroutine was taken for this one")
	}
	unregister(mine)
	unregister(mine) // a second call does no harm
	if Current() != nil {
		t.Fatal("found after it had left")
	}
	for i := range others {
		if i%2 == 1 {
			unregister(&others[i])
		}
	}
}

// Spec: FB-03 (a coroutine is reused for the next thunk)
// Spec: FB-10 (a spawn never waits for a coroutine)
func TestPoolGivesBackWhatWasPutIn(t *testing.T) {
	var p pool
	w := new(Worker)
	if p.get(w) != nil || w.nframes != 0 {
		t.Fatal("something came out of nothing")
	}
	const n = 3 * keepFrames
	frames := make([]Frame, n)
	known := map[*Frame]bool{}
	for i := range frames {
		known[&frames[i]] = true
		if w.nframes == keepFrames {
			p.put(w, 7)
			if w.nframes != 7 || p.n != i-7 {
				t.Fatalf("the worker has %d, the pool %d", w.nframes, p.n)
			}
		}
		w.keep(&frames[i])
	}
	p.put(w, 0)
	if w.nframes != 0 || w.frames != [keepFrames]*Frame{} || p.n != n {
		t.Fatalf("the worker has %d, the pool %d", w.nframes, p.n)
	}
	for len(known) > 0 {
		fr := p.get(w)
		if fr == nil || !known[fr] {
			t.Fatalf("%d are missing", len(known))
		}
		delete(known, fr)
		for ; w.nframes > 0; w.nframes-- {
			fr := w.frames[w.nframes-1]
			if !known[fr] {
				t.Fatal("a frame came out twice")
			}
			delete(known, fr)
		}
	}
	if p.n != 0 || p.get(w) != nil {
		t.Fatal("not empty")
	}
}
