package stream

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/coir-go/coir"
)

// A crew processes elements in parallel. There are three parties: the fiber of the input puts elements into the crew,
// workers take them and put back results, and the consumer, in the fiber of the stream, takes the results. One lock
// guards their shared state. It is held for a few instructions, or while the rings grow, and never during a wait. A
// party that has nothing to do marks itself as waiting, releases the lock and receives from a channel; the party that
// has work for it sends to that channel.
//
// Invariants, under mu:
//
//	P1 window: put - taken <= window, and each element that was put in and not taken is in one place: in ready, behind
//	           another element of its key, at a worker, or among the results. The rings have room for all of them: they
//	           grow when an element is put in, up to window.
//	P2 order:  if ordered, the number of a result is that of its element; otherwise results are numbered as they end.
//	P3 key:    of the elements with the same key, at most one is in ready or at a worker; busy has the last element of
//	           each key.
//	P4 wake:   if a party waits, there is nothing for it to do, or a wake is on its way to it. The input waits until
//	           half of the window is free.
//
// Rejected design: coir.Ordered, with a fiber for each element. For each element it costs two channel operations and
// the start of a fiber, which is more than the work itself if that is short.
type crew[K comparable, T, R any] struct {
	ordered bool
	key     func(T) K // nil if elements do not wait for each other
	window  int
	idlers  *coir.Chan[struct{}] // wakes idle workers; closed when there is no more work
	result  *coir.Chan[struct{}] // wakes the consumer
	space   *coir.Chan[struct{}] // wakes the input

	// mu guards the fields below. It is not a sync.Mutex, so that package sim sees which operations depend on each
	// other.
	mu       *coir.Cond
	jobs     []job[K, T]
	free     []int32 // indexes of unused jobs
	ready    ring[int32]
	busy     map[K]int32  // the last job of each key that has one
	out      []outcome[R] // each result is at its number modulo the length
	put      int          // number of elements put in
	finished int          // number of results, if they are not ordered
	taken    int          // number of results that the consumer has taken
	idle     int          // waiting workers to which no wake is on its way
	waits    bool         // the consumer waits
	full     bool         // the input waits
	ended    bool         // no more elements will be put in
	stopped  bool         // an element has failed: no more work is started
	failed   error
}

type job[K comparable, T any] struct {
	v      T
	key    K
	number int
	next   int32 // the job of the same key that waits for this one, or -1
}

type outcome[R any] struct {
	v    R
	err  error
	done bool
}

// ring is a queue of bounded length.
type ring[E any] struct {
	buf     []E
	at, len int
}

func (r *ring[E]) push(e E) {
	r.buf[(r.at+r.len)%len(r.buf)] = e
	r.len++
}

func (r *ring[E]) pop() E {
	e := r.buf[r.at]
	r.at = (r.at + 1) % len(r.buf)
	r.len--
	return e
}

// Parallel calls f for up to n elements at a time, and passes on the results in the order of the elements. A slow call
// delays the results behind it; the calls behind it go on, for up to 4n elements. The first error of f ends the stream,
// after the results before it. When the stream ends, Parallel cancels running calls and waits for them.
//
// The stages before it run in a fiber of their own, and the calls run in n worker fibers. If f blocks outside of coir,
// it should use [coir.Blocking].
//
//	                  a-b-c-d-|
//	Parallel(2, f)    ----A-B-C-D-|   f(a) takes longest
func Parallel[T, R any](s Stream[T], n int, f func(ctx context.Context, v T) (R, error)) Stream[R] {
	// Spec: ST-07 (an ordered stage keeps the order of inputs)
	return parallel[struct{}](s, "Parallel", n, true, nil, f)
}

// ParallelUnordered is like [Parallel], but passes each result as soon as it is available.
//
//	                           a-b-c-d-|
//	ParallelUnordered(2, f)    ---B-A-C-D-|   f(a) takes longest
func ParallelUnordered[T, R any](s Stream[T], n int, f func(ctx context.Context, v T) (R, error)) Stream[R] {
	return parallel[struct{}](s, "ParallelUnordered", n, false, nil, f)
}

// ParallelPerKey is like [ParallelUnordered], but calls f for the elements of one key one after the other, so that the
// results of a key are in the order of its elements. Elements that wait for an earlier one of the same key count
// towards the 4n elements in progress: with few keys, fewer calls run in parallel.
//
//	                             a1-a2-b1-|
//	ParallelPerKey(2, key, f)    ---B1-A1-A2-|
func ParallelPerKey[T any, K comparable, R any](
	s Stream[T], n int, key func(T) K, f func(ctx context.Context, v T) (R, error),
) Stream[R] {
	return parallel(s, "ParallelPerKey", n, false, key, f)
}

func parallel[K comparable, T, R any](
	s Stream[T], name string, n int, ordered bool, key func(T) K, f func(ctx context.Context, v T) (R, error),
) Stream[R] {
	if n < 1 {
		panic(fmt.Sprintf("stream: %s(%d): at least one call must be able to run", name, n))
	}
	n = min(n, math.MaxInt32/4) // so that an int32 is enough for the window
	p := apart(fmt.Sprintf("%d workers, at most %d elements", n, 4*n), name, s.plan)
	return boundary(p, func(ctx context.Context, nursery *home, d *demand, push func([]R) bool) error {
		c := newCrew[K, T, R](nursery.plan, n, ordered, key)
		workers := 0
		spawn(nursery, inputName(s.plan, nursery.called("parallel")), func(ctx context.Context) error {
			return s.pass(ctx, func(v T) error {
				if workers < n { // workers start when they are needed
					workers++
					nursery.Go(nursery.of("worker"), func(ctx context.Context) error { return c.work(ctx, f) })
				}
				return c.add(ctx, v)
			})
		}, c.end)
		return c.pass(ctx, d, push)
	})
}

func newCrew[K comparable, T, R any](p *plan, n int, ordered bool, key func(T) K) *crew[K, T, R] {
	c := &crew[K, T, R]{
		ordered: ordered, key: key, window: 4 * n,
		idlers: coir.NewChan[struct{}](n, coir.WithName(p.of("work"))),
		result: coir.NewChan[struct{}](1, coir.WithName(p.of("results"))),
		space:  coir.NewChan[struct{}](1, coir.WithName(p.of("room for work"))),
		mu:     coir.NewCond(coir.WithName(p.of("elements and results"))),
	}
	c.grow()
	if key != nil {
		c.busy = make(map[K]int32)
	}
	return c
}

// grow makes room for more elements. It is called under mu, when there is no room.
func (c *crew[K, T, R]) grow() {
	had := len(c.out)
	size := min(max(2*had, 64), c.window) // at first for 16 workers: a large n costs nothing until it is used
	out := make([]outcome[R], size)
	for number := c.taken; number < c.put; number++ {
		out[number%size] = c.out[number%had]
	}
	ready := ring[int32]{buf: make([]int32, size)}
	for c.ready.len > 0 {
		ready.push(c.ready.pop())
	}
	c.out, c.ready = out, ready
	c.jobs = append(c.jobs, make([]job[K, T], size-had)...)
	c.free = slices.Grow(c.free, size-len(c.free))
	for i := had; i < size; i++ {
		c.free = append(c.free, int32(i))
	}
}

// wake sends to a channel that has room, or that is closed.
func wake(c *coir.Chan[struct{}]) { _ = c.TrySend(struct{}{}) }

// add puts an element in when there is room.
func (c *crew[K, T, R]) add(ctx context.Context, v T) error {
	// Spec: ST-04 (backpressure passes through)
	var key K
	if c.key != nil {
		key = c.key(v) // not under the lock: it may panic, and so may the hash of an interface
		_ = map[K]int32(nil)[key]
	}
	c.mu.Lock()
	for c.put-c.taken == c.window {
		c.full = true
		c.mu.Unlock()
		if _, err := c.space.Recv(ctx); err != nil {
			return err
		}
		c.mu.Lock()
	}
	if c.put-c.taken == len(c.out) {
		c.grow()
	}
	at := c.free[len(c.free)-1]
	c.free = c.free[:len(c.free)-1]
	c.jobs[at] = job[K, T]{v: v, key: key, number: c.put, next: -1}
	c.put++
	waits := false
	if c.key != nil {
		var before int32
		if before, waits = c.busy[key]; waits {
			c.jobs[before].next = at
		}
		if findable(key) {
			c.busy[key] = at
		}
	}
	call := false
	if !waits {
		c.ready.push(at)
		call = c.callIdle()
	}
	c.mu.Unlock()
	if call {
		wake(c.idlers)
	}
	return nil
}

// callIdle reports whether the caller must wake an idle worker. If so, it no longer counts that worker as idle. It is
// called under mu.
func (c *crew[K, T, R]) callIdle() bool {
	if c.idle == 0 {
		return false
	}
	c.idle--
	return true
}

// end records that there are no more elements.
func (c *crew[K, T, R]) end(err error) {
	c.mu.Lock()
	c.ended, c.failed = true, err
	call := c.waits
	c.waits = false
	c.mu.Unlock()
	c.idlers.Close()
	if call {
		wake(c.result)
	}
}

// work takes elements and puts back results, until there are no more.
func (c *crew[K, T, R]) work(ctx context.Context, f func(context.Context, T) (R, error)) error {
	for {
		c.mu.Lock()
		if c.stopped {
			c.mu.Unlock()
			return nil
		}
		if c.ready.len == 0 {
			c.idle++
			c.mu.Unlock()
			if _, err := c.idlers.Recv(ctx); err != nil {
				return nil //nolint:nilerr // there is no more work, or the results are no longer wanted
			}
			continue
		}
		at := c.ready.pop()
		v := c.jobs[at].v
		c.mu.Unlock()
		c.call(ctx, at, v, f)
	}
}

// call calls f and puts back the result. If f does not return, the result is coir.ErrGoexit, so that the consumer does
// not wait forever.
func (c *crew[K, T, R]) call(ctx context.Context, at int32, v T, f func(context.Context, T) (R, error)) {
	var r R
	err := coir.ErrGoexit
	defer func() { c.finish(at, r, err) }()
	r, err = f(ctx, v)
}

// finish puts back the result of a job, and makes the next job of the same key ready. It need not wake a worker for
// that job, because the calling worker looks for work next.
func (c *crew[K, T, R]) finish(at int32, r R, err error) {
	c.mu.Lock()
	j := &c.jobs[at]
	number := j.number
	if !c.ordered {
		number = c.finished
		c.finished++
	}
	c.out[number%len(c.out)] = outcome[R]{v: r, err: err, done: true}
	if c.key != nil {
		if j.next >= 0 {
			c.ready.push(j.next)
		} else {
			delete(c.busy, j.key)
		}
	}
	*j = job[K, T]{}
	c.free = append(c.free, at)
	c.stopped = c.stopped || err != nil
	call := c.waits && c.out[c.taken%len(c.out)].done
	if call {
		c.waits = false
	}
	c.mu.Unlock()
	if call {
		wake(c.result)
	}
}

// pass pushes the results, each time as many as are available and the consumer wants.
func (c *crew[K, T, R]) pass(ctx context.Context, d *demand, push func([]R) bool) error {
	var buf []R
	for {
		buf = room(buf, min(d.want, c.window))
		n, call, failed := 0, false, error(nil)
		c.mu.Lock()
		for n < len(buf) {
			o := &c.out[c.taken%len(c.out)]
			if !o.done || o.err != nil {
				failed = o.err
				break
			}
			buf[n] = o.v
			*o = outcome[R]{}
			c.taken++
			n++
		}
		over := c.ended && c.put == c.taken
		if n == 0 && failed == nil && !over {
			c.waits = true
			c.mu.Unlock()
			if _, err := c.result.Recv(ctx); err != nil {
				return err
			}
			continue
		}
		if c.full && c.put-c.taken <= c.window/2 { // wake the input once for several elements
			c.full, call = false, true
		}
		c.mu.Unlock()
		if call {
			wake(c.space)
		}
		if err := coir.Ended(ctx); err != nil { // this fiber may not have waited for a long time
			return err
		}
		if n > 0 && !push(buf[:n]) {
			return nil
		}
		if failed != nil {
			return failed
		}
		if over {
			return c.failed
		}
	}
}
