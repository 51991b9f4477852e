package sim

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/invariant"
	"github.com/coir-go/coir/internal/policy"
)

// roster keeps the fibers of a schedule. They are numbered in the order of creation.
//
//   - fibers[:nfibers] are the fibers that the schedule has had.
//   - ready[:nready] are the numbers of those that can run, ascending. None of them has ended.
//   - ways has room for all fibers, and for two more ways.
type roster struct {
	ids     idTable // the numbers of fibers, by their numbers in the process
	fibers  []fiber
	nfibers int
	ready   []int32
	nready  int
	current int32   // the fiber that runs, or ran last, or -1
	next    int32   // the fiber chosen by a Step that returned false, or -1
	woken   inbox   // fibers woken by the clock or from outside, and not in ready yet
	settled bool    // the fiber that ran last sleeps; if it has been woken, it is in ready
	ways    []int32 // the ways of the current decision: fibers, search.Clock or search.Value
}

// fiber is the world's record of a fiber.
type fiber struct {
	f       *coir.Fiber
	op      policy.Op
	object  int32
	cases   span // of op, if it is a select
	pending bool // op has been announced, but not allowed yet
	waiting bool // it has performed op, and has not continued
	paused  bool // it has performed op without waiting, and may not continue yet
	took    bool // op has taken something, or given it back
	acted   bool // it has performed op, which is operation number step of the trace
	told    bool // how was reported by the operation, and is not an inference
	how     policy.Outcome
	ended   bool
	since   time.Duration
	step    int   // of op
	served  int   // the number of operations when its wait in op ended; 0 if it did not wait
	gone    int   // the part of what op took that others have given back before the fiber continued
	moves   int32 // how many times it was chosen
	woken   int32 // the log entry that made it ready, if it waited or is new
	site    site  // of op, if telling
}

//go:norace
func (r *roster) reset() {
	r.ids.clear()
	for i := range r.nfibers {
		r.fibers[i] = fiber{}
	}
	r.nfibers, r.nready, r.current, r.next, r.settled = 0, 0, -1, -1, false
}

// fiberOf returns the world's number of a fiber.
//
//go:norace
func (r *roster) fiberOf(f policy.Fiber) int32 {
	i, fresh := r.ids.find(f.ID())
	if fresh {
		if int(i) == len(r.fibers) {
			r.growFibers()
		}
		r.fibers[i] = fiber{f: f.(*coir.Fiber), object: -1}
		r.nfibers++
	}
	return i
}

//go:norace
func (r *roster) growFibers() {
	r.fibers, r.ready = doubled(r.fibers), doubled(r.ready)
	r.ways = make([]int32, len(r.fibers)+2)
}

// Ready implements policy.Policy.
//
//go:norace
func (w *world) Ready(f policy.Fiber) {
	i := w.fiberOf(f)
	w.insert(i)
	if x := &w.fibers[i]; !x.pending && !x.paused {
		if w.tells && x.acted {
			w.keepServed(x.step)
		}
		x.waiting, x.woken = false, int32(w.log.n-1)
		x.served = w.nsteps
	}
}

// insert adds fiber i to those that can run.
//
//go:norace
func (r *roster) insert(i int32) {
	at := r.nready
	for at > 0 && r.ready[at-1] > i {
		r.ready[at] = r.ready[at-1]
		at--
	}
	r.ready[at] = i
	r.nready++
	if invariant.Enabled {
		r.check()
	}
}

// check checks the invariants.
//
//go:norace
func (r *roster) check() {
	for k := range r.nready {
		invariant.Check(k == 0 || r.ready[k-1] < r.ready[k], "the fibers that can run are not in the order of creation")
		invariant.Check(!r.fibers[r.ready[k]].ended, "a fiber that has ended can run")
	}
}

// remove removes fiber i from those that can run.
//
//go:norace
func (r *roster) remove(i int32) {
	ready := r.ready[:r.nready]
	for at := r.place(i) + 1; at < len(ready); at++ {
		ready[at-1] = ready[at]
	}
	r.nready--
}

// place returns how many fibers that can run were created before fiber i. If fiber i can run, that is its index in
// ready.
//
//go:norace
func (r *roster) place(i int32) int {
	low, high := 0, r.nready
	for low < high {
		if mid := (low + high) / 2; r.ready[mid] < i {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// Len implements policy.Policy.
//
//go:norace
func (w *world) Len() int { return w.nready + int(w.woken.n.Load()) }

// inbox holds fibers that were woken by goroutines other than that of the running fiber.
type inbox struct {
	n      atomic.Int32
	mu     sync.Mutex
	fibers []policy.Fiber
}

// Wake implements policy.Policy.
//
//go:norace
func (w *world) Wake(f policy.Fiber) { w.woken.add(f) }

//go:norace
func (in *inbox) add(f policy.Fiber) {
	in.mu.Lock()
	n := int(in.n.Load())
	if n == len(in.fibers) {
		in.fibers = doubled(in.fibers)
	}
	in.fibers[n] = f
	in.n.Add(1)
	in.mu.Unlock()
}

// collect moves the fibers in the inbox to those that can run.
//
//go:norace
func (w *world) collect() {
	in := &w.woken
	if in.n.Load() == 0 {
		return
	}
	in.mu.Lock()
	for i := range in.n.Load() {
		w.Ready(in.fibers[i])
		in.fibers[i] = nil
	}
	in.n.Store(0)
	in.mu.Unlock()
}
