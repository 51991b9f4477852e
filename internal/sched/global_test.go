package sched

// The global queue: first in, first out; a worker's share of it; tasks that do not fit stay in place.

import (
	"fmt"
	"slices"
	"testing"
)

// queued returns tasks that may be put in a queue, as checked builds require.
func queued(n int) []*Task {
	ts := tasks(n)
	for _, t := range ts {
		t.enqueue()
	}
	return ts
}

func drainList(l *list) (out []*Task) {
	for t := l.pop(); t != nil; t = l.pop() {
		out = append(out, t)
	}
	return out
}

func drainRing(r *ring) (out []*Task) {
	for t := r.pop(); t != nil; t = r.pop() {
		out = append(out, t.dequeue())
	}
	return out
}

func TestGlobalIsFirstInFirstOut(t *testing.T) {
	var l list
	if l.pop() != nil {
		t.Fatal("something came out of nothing")
	}
	ts := queued(10)
	l.push(ts[0])
	l.push(ts[1:4]...)
	l.push()
	if l.pop() != ts[0] {
		t.Fatal("not the oldest")
	}
	l.push(ts[4:]...)
	if got := drainList(&l); !slices.Equal(got, ts[1:]) {
		t.Fatal("not in order")
	}
	if l.n.Load() != 0 || l.head != nil || l.tail != nil {
		t.Fatal("not empty")
	}
}

// A worker takes one task to run, and of the rest one worker's share, but at most half a ring.
//
// Spec: SC-14 (a global batch is a fair share)
func TestShareIsFair(t *testing.T) {
	for _, c := range []struct{ queued, workers, moved int }{
		{1, 1, 0}, {1, 4, 0}, {2, 1, 1}, {2, 2, 0}, {9, 4, 2}, {101, 2, 50}, {101, 1, 100}, {5000, 2, ringSize / 2},
	} {
		t.Run(fmt.Sprintf("%d tasks %d workers", c.queued, c.workers), func(t *testing.T) {
			var l list
			var r ring
			ts := queued(c.queued)
			l.push(ts...)
			if got := l.share(&r, c.workers); got != ts[0] {
				t.Fatal("the one to run is not the oldest")
			}
			if got := drainRing(&r); !slices.Equal(got, ts[1:1+c.moved]) {
				t.Fatalf("moved %d, want %d, in order", len(got), c.moved)
			}
			if got := drainList(&l); !slices.Equal(got, ts[1+c.moved:]) {
				t.Fatalf("left %d, want %d, in order", len(got), c.queued-1-c.moved)
			}
		})
	}
	var l list
	var r ring
	if l.share(&r, 1) != nil {
		t.Fatal("something came out of nothing")
	}
}

func TestShareLeavesWhatDoesNotFit(t *testing.T) {
	for _, room := range []int{0, 1, 5} {
		var l list
		var r ring
		inside := queued(ringSize - room)
		for _, task := range inside {
			r.push(task)
		}
		ts := queued(20)
		l.push(ts...)
		if got := l.share(&r, 1); got != ts[0] {
			t.Fatal("the one to run is not the oldest")
		}
		if got := drainRing(&r); !slices.Equal(got, append(slices.Clone(inside), ts[1:1+room]...)) {
			t.Fatalf("room for %d: the ring holds %d", room, len(got))
		}
		if got := drainList(&l); !slices.Equal(got, ts[1+room:]) {
			t.Fatalf("room for %d: left %d, want %d, in order", room, len(got), 19-room)
		}
	}
}
