package wait

// The queue of waiters: the order of arrival, removal from anywhere, and withdrawing a node that has already been
// shifted.

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/coir-go/coir/internal/park"
)

// waiters are nodes that each have a parker; a ticket is the node's number.
type waiters struct {
	nodes   []Node
	parkers []park.Parker
}

func newWaiters(n int) *waiters {
	return &waiters{nodes: make([]Node, n), parkers: make([]park.Parker, n)}
}

func (w *waiters) push(q *Queue, i int) { q.Push(&w.nodes[i], &w.parkers[i], park.Ticket(i)) }

// pop returns the number of the node that it removed, or -1.
func (w *waiters) pop(t *testing.T, q *Queue) int {
	t.Helper()
	n := q.Shift()
	if n == nil {
		return -1
	}
	if n.Parker != &w.parkers[n.Ticket] {
		t.Fatalf("ticket %d came with another one's parker", n.Ticket)
	}
	return int(n.Ticket)
}

// drained empties the queue and returns the numbers in order. It checks the links on the way.
func (w *waiters) drained(t *testing.T, q *Queue) (got []int) {
	t.Helper()
	var prev *Node
	for n := q.head; n != nil; n = n.next {
		if n.prev != prev || !n.queued {
			t.Fatalf("node %d is linked wrongly", n.Ticket)
		}
		prev = n
	}
	if q.tail != prev {
		t.Fatal("tail is not the last node")
	}
	for i := w.pop(t, q); i >= 0; i = w.pop(t, q) {
		got = append(got, i)
	}
	if !q.Empty() || q.Len() != 0 || q.First() != nil || q.tail != nil {
		t.Fatal("nothing comes out, and yet it is not empty")
	}
	return got
}

// Spec: PK-07 (a waiter node carries word and ticket)
// Spec: PK-24 (a published waiter is found by a wake)
func TestQueueKeepsTheOrderOfArrival(t *testing.T) {
	var q Queue
	if !q.Empty() {
		t.Fatal("the zero value is not empty")
	}
	w := newWaiters(5)
	for i := range 5 {
		w.push(&q, i)
		if q.Empty() || q.Len() != i+1 || q.First() != &w.nodes[0] {
			t.Fatalf("after %d pushes: empty %v, %d of them, first is the first: %v", i+1, q.Empty(), q.Len(), q.First() == &w.nodes[0])
		}
	}
	if got := w.drained(t, &q); !slices.Equal(got, []int{0, 1, 2, 3, 4}) {
		t.Fatal(got)
	}
}

// Spec: PK-25 (unpublishing is idempotent)
func TestRemoveFromAnywhere(t *testing.T) {
	for _, c := range []struct {
		name string
		size int
		out  []int
		left []int
	}{
		{"the only one", 1, []int{0}, nil},
		{"head", 4, []int{0}, []int{1, 2, 3}},
		{"middle", 4, []int{2}, []int{0, 1, 3}},
		{"tail", 4, []int{3}, []int{0, 1, 2}},
		{"neighbours", 5, []int{2, 1}, []int{0, 3, 4}},
		{"both ends", 4, []int{0, 3}, []int{1, 2}},
		{"all, from the tail", 3, []int{2, 1, 0}, nil},
		{"twice the same", 3, []int{1, 1}, []int{0, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var q Queue
			w := newWaiters(c.size)
			for i := range c.size {
				w.push(&q, i)
			}
			for _, i := range c.out {
				q.Withdraw(&w.nodes[i])
				if w.nodes[i].queued {
					t.Fatalf("%d is out, and says that it is queued", i)
				}
			}
			if got := w.drained(t, &q); !slices.Equal(got, c.left) {
				t.Fatalf("left %v, want %v", got, c.left)
			}
		})
	}
}

// A waiter that gives up removes its node without knowing whether a waker has already shifted it.
//
// Spec: PK-25 (unpublishing is idempotent)
// Spec: PK-42 (a node is given back once, by what ended it)
func TestRemoveOfWhatIsNotThere(t *testing.T) {
	var q, other Queue
	w := newWaiters(3)
	q.Withdraw(&w.nodes[0]) // never was
	w.push(&q, 0)
	w.push(&q, 1)
	if i := w.pop(t, &q); i != 0 {
		t.Fatal(i)
	}
	q.Withdraw(&w.nodes[0]) // popped
	q.Withdraw(&w.nodes[0]) // and again
	w.push(&other, 0)
	w.push(&q, 2)
	if got := w.drained(t, &q); !slices.Equal(got, []int{1, 2}) {
		t.Fatal(got)
	}
	if got := w.drained(t, &other); !slices.Equal(got, []int{0}) {
		t.Fatal(got)
	}
}

// Random pushes, shifts and withdrawals on two queues, compared with a slice for each.
//
// Spec: PK-24 (a published waiter is found by a wake)
// Spec: PK-25 (unpublishing is idempotent)
func TestQueueAgainstSlices(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	const nodes = 20
	var queues [2]Queue
	var model [2][]int
	w := newWaiters(nodes)
	for step := range 20_000 {
		k, i := rnd.IntN(2), rnd.IntN(nodes)
		q := &queues[k]
		switch rnd.IntN(3) {
		case 0:
			if w.nodes[i].queued {
				continue // one wait at a time
			}
			w.push(q, i)
			model[k] = append(model[k], i)
		case 1:
			want := -1
			if len(model[k]) > 0 {
				want, model[k] = model[k][0], model[k][1:]
			}
			if got := w.pop(t, q); got != want {
				t.Fatalf("seed %d, step %d: popped %d, want %d", seed, step, got, want)
			}
		case 2:
			if slices.Contains(model[1-k], i) {
				continue // its owner knows where it waits
			}
			q.Withdraw(&w.nodes[i])
			model[k] = slices.DeleteFunc(model[k], func(x int) bool { return x == i })
		}
		if q.Empty() != (len(model[k]) == 0) || q.Len() != len(model[k]) {
			t.Fatalf("seed %d, step %d: empty is %v, the length is %d, the model has %v", seed, step, q.Empty(), q.Len(), model[k])
		}
		if first := q.First(); first != nil && int(first.Ticket) != model[k][0] {
			t.Fatalf("seed %d, step %d: the first is %d, the model has %v", seed, step, first.Ticket, model[k])
		}
	}
	for k := range queues {
		if got := w.drained(t, &queues[k]); !slices.Equal(got, model[k]) {
			t.Fatalf("seed %d: queue %d held %v, want %v", seed, k, got, model[k])
		}
	}
}

// A ring behaves like a queue: random pushes, shifts and withdrawals, also of nodes that are not in it.
//
// Spec: PK-25 (unpublishing is idempotent)
func TestRingAgainstASlice(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	var r Ring
	var want []int
	w := newWaiters(6)
	for step := range 20_000 {
		i := rnd.IntN(len(w.nodes))
		at := slices.Index(want, i)
		switch rnd.IntN(3) {
		case 0:
			if at < 0 {
				r.Push(&w.nodes[i], &w.parkers[i], park.Ticket(i))
				want = append(want, i)
			}
		case 1:
			r.Withdraw(&w.nodes[i])
			if at >= 0 {
				want = slices.Delete(want, at, at+1)
			}
			if w.nodes[i].Parker != nil {
				t.Fatalf("seed %d, step %d: a node that was withdrawn keeps its parker", seed, step)
			}
		case 2:
			n := r.Shift()
			if (n == nil) != (len(want) == 0) || n != nil && (n != &w.nodes[want[0]] || n.Parker != &w.parkers[want[0]]) {
				t.Fatalf("seed %d, step %d: shifted %v, want the first of %v", seed, step, n, want)
			}
			if n != nil {
				want = want[1:]
			}
		}
		if r.Empty() != (len(want) == 0) {
			t.Fatalf("seed %d, step %d: empty %v, want %v", seed, step, r.Empty(), want)
		}
		for i := range w.nodes {
			if n := &w.nodes[i]; !slices.Contains(want, i) && (n.prev != nil || n.next != nil || n.queued) {
				t.Fatalf("seed %d, step %d: node %d is out, and has links", seed, step, i)
			}
		}
	}
}
