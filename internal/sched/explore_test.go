//go:build coirinterleave

package sched

// These tests explore all orders of accesses to the real queues, to the real sleep of workers and to the real end of a
// scheduler. The monitor does not run here: the code must be correct without it, except for a task that was queued on a
// running worker and not offered.

import (
	"fmt"
	"math"
	"testing"

	"github.com/coir-go/coir/internal/interleave"
	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/soak"
	"github.com/coir-go/coir/internal/xatomic"
)

// taken counts how often each task came out of a queue.
type taken struct {
	ts []*Task
	n  []int
}

func newTaken(n int) *taken { return &taken{tasks(n), make([]int, n)} }

func (k *taken) add(ts ...*Task) {
	for _, t := range ts {
		if t == nil {
			continue
		}
		known := false
		for i, u := range k.ts {
			if u == t {
				k.n[i]++
				known = true
			}
		}
		if !known {
			interleave.Failf("a task came out that was never put in")
		}
	}
}

// check fails unless each task came out exactly once.
func (k *taken) check() {
	for i, n := range k.n {
		if n != 1 {
			interleave.Failf("task %d came out %d times", i, n)
		}
	}
}

// The worker pushes and pops while two thieves take, and the places and the counters wrap around.
//
// Spec: SC-08 (a fiber is enqueued once for each wake)
// Spec: SC-10 (a queue gives each entry to one taker)
// Spec: SC-17 (a moving fiber is in one queue)
func TestExploreRing(t *testing.T) {
	for name, start := range map[string]uint32{"places wrap": ringSize - 2, "counters wrap": math.MaxUint32 - 1} {
		t.Run(name, func(t *testing.T) {
			interleave.Check(t, interleave.Config{}, func() {
				r := ringAt(start)
				k := newTaken(4)
				r.push(k.ts[0])
				r.push(k.ts[1])
				thief := func() {
					var loot [2]*Task
					k.add(loot[:r.grab(loot[:])]...)
				}
				interleave.Go("thief a", thief)
				interleave.Go("thief b", thief)
				interleave.Go("worker", func() {
					r.push(k.ts[2])
					k.add(r.pop())
					r.push(k.ts[3])
				})
				interleave.JoinAll()
				for t := r.pop(); t != nil; t = r.pop() {
					k.add(t)
				}
				k.check()
			})
		})
	}
}

// The worker takes back the newest task and pushes another into its place while a thief takes: no task comes out twice.
//
// Spec: SC-10 (a queue gives each entry to one taker)
func TestExploreUnpush(t *testing.T) {
	for name, start := range map[string]uint32{"places wrap": ringSize - 1, "ends wrap": math.MaxUint16} {
		t.Run(name, func(t *testing.T) {
			interleave.Check(t, interleave.Config{}, func() {
				r := ringAt(start)
				k := newTaken(3)
				r.push(k.ts[0])
				for range 2 {
					interleave.Go("thief", func() {
						var loot [1]*Task
						k.add(loot[:r.grab(loot[:])]...)
					})
				}
				interleave.Go("worker", func() {
					for _, t := range k.ts[1:] {
						if n := r.newest(); n != nil && r.unpush(n) {
							k.add(n)
						}
						r.push(t)
					}
				})
				interleave.JoinAll()
				for t := r.pop(); t != nil; t = r.pop() {
					k.add(t)
				}
				k.check()
			})
		})
	}
}

// A full ring: the worker's push fails, or finds the place that a thief has just freed.
func TestExploreFullRing(t *testing.T) {
	interleave.Check(t, interleave.Config{}, func() {
		r := ringAt(math.MaxUint32 - ringSize/2)
		k := newTaken(ringSize + 2)
		for _, t := range k.ts[:ringSize] {
			r.push(t)
		}
		interleave.Go("thief", func() {
			var loot [1]*Task
			for range 2 {
				k.add(loot[:r.grab(loot[:])]...)
			}
		})
		interleave.Go("worker", func() {
			for _, t := range k.ts[ringSize:] {
				if !r.push(t) {
					k.add(t)
				}
			}
			k.add(r.pop())
		})
		interleave.JoinAll()
		for t := r.pop(); t != nil; t = r.pop() {
			k.add(t)
		}
		k.check()
	})
}

// A ring that overflows into the global queue while a thief takes from it.
//
// Spec: SC-05 (a full local queue spills half, and loses nothing)
func TestExploreOverflow(t *testing.T) {
	interleave.Check(t, interleave.Config{}, func() {
		s, ws := still(t, 1)
		w := ws[0]
		k := newTaken(ringSize + 1)
		for _, t := range k.ts[:ringSize] {
			w.ring.push(t)
		}
		interleave.Go("thief", func() {
			var loot [1]*Task
			k.add(loot[:w.ring.grab(loot[:])]...)
		})
		interleave.Go("worker", func() { w.toRing(k.ts[ringSize]) })
		interleave.JoinAll()
		for t := w.ring.pop(); t != nil; t = w.ring.pop() {
			k.add(t)
		}
		for t := s.global.head; t != nil; t = t.link {
			k.add(t)
		}
		k.check()
	})
}

// A worker moves a share of the global queue into its ring, whose places wrap around, while a thief takes from the ring
// and another worker from the global queue.
//
// Spec: SC-10 (a queue gives each entry to one taker)
// Spec: SC-17 (a moving fiber is in one queue)
func TestExploreShare(t *testing.T) {
	interleave.Check(t, interleave.Config{}, func() {
		s, ws := still(t, 1)
		w := ws[0]
		w.ring = *ringAt(ringSize - 2)
		k := newTaken(5)
		w.ring.push(k.ts[0])
		for _, t := range k.ts[1:] {
			t.enqueue()
			s.global.push(t)
		}
		interleave.Go("thief", func() {
			var loot [2]*Task
			k.add(loot[:w.ring.grab(loot[:])]...)
		})
		interleave.Go("another worker", func() { k.add(s.global.pop()) })
		interleave.Go("worker", func() {
			k.add(s.global.share(&w.ring, 1))
			k.add(w.ring.pop())
		})
		interleave.JoinAll()
		for t := w.ring.pop(); t != nil; t = w.ring.pop() {
			k.add(t)
		}
		if n := s.global.n.Load(); n != 0 || s.global.head != nil {
			interleave.Failf("the global queue counts %d tasks, and the first is %p", n, s.global.head)
		}
		k.check()
	})
}

// The run-next place: one worker puts and takes, two take.
//
// Spec: SC-10 (a queue gives each entry to one taker)
func TestExploreNext(t *testing.T) {
	interleave.Check(t, interleave.Config{}, func() {
		var place runNext
		k := newTaken(3)
		place.put(k.ts[0])
		thief := func() { k.add(place.take()) }
		interleave.Go("thief a", thief)
		interleave.Go("thief b", thief)
		interleave.Go("worker", func() {
			k.add(place.put(k.ts[1]))
			k.add(place.take())
			k.add(place.put(k.ts[2]))
		})
		interleave.JoinAll()
		k.add(place.take())
		k.check()
	})
}

// explored is a scheduler that counts its jobs, and waits for them in a way that an exploration sees.
type explored struct {
	*Scheduler
	ended xatomic.Sema // posted by the last
	left  xatomic.Int32
}

func explore(workers, most, jobs int) *explored {
	e := &explored{Scheduler: New(Config{Workers: workers, MaxWorkers: most, Thunk: jobOf}), ended: xatomic.NewSema()}
	e.left.Store(int32(jobs))
	return e
}

// job makes a job that runs fn.
func (e *explored) job(fn func(*job)) *job {
	j := &job{fn: fn}
	j.ended = func() {
		if j.failed != nil {
			interleave.Failf("a job has failed: %v", j.failed)
		}
		if e.left.Add(-1) == 0 {
			e.ended.Post()
		}
	}
	j.task.Init(e.Scheduler)
	return j
}

// out starts a job from outside.
func (e *explored) out(fn func(*job)) { e.Go(&e.job(fn).task, nil) }

func nothing(*job) {}

// either returns short, or in long runs long.
func either(short, long interleave.Config) interleave.Config {
	if soak.On() {
		return long
	}
	return short
}

// Jobs come from outside while the worker finds nothing and goes to sleep. Each job is run, without the monitor.
//
// Spec: SC-23 (an idle worker blocks and does not spin)
// Spec: SC-24 (a worker sleeps only after a second look)
// Spec: SC-44 (a sleeping worker is preferred to a new one)
// Spec: SC-25 (work pushed at bedtime is found)
func TestExploreIdleSleep(t *testing.T) {
	for _, c := range []struct {
		name               string
		workers, producers int
		cfg                interleave.Config
	}{
		{"one worker", 1, 0, interleave.Config{}},
		{"two workers", 2, 0, either(interleave.Config{Bound: 2}, interleave.Config{})},
		{"one worker, a producer", 1, 1, either(interleave.Config{Bound: 2}, interleave.Config{})},
		{"one worker, two producers", 1, 2, either(interleave.Config{Bound: 1}, interleave.Config{Bound: 3})},
		{"two workers, a producer", 2, 1, either(interleave.Config{Bound: 1}, interleave.Config{Bound: 3})},
	} {
		t.Run(c.name, func(t *testing.T) {
			interleave.Check(t, c.cfg, func() {
				e := explore(c.workers, c.workers, 2+c.producers)
				e.Enter()
				e.out(nothing) // starts a worker, which then looks for more
				for range c.producers {
					interleave.Go("producer", func() { e.out(nothing) })
				}
				e.out(nothing)
				e.ended.Wait()
				e.Leave()
				e.Close()
				interleave.JoinAll()
			})
		})
	}
}

// Another thread wakes a job that is on its way to sleep, or asleep, while the worker goes to sleep or another is
// woken.
//
// Spec: PK-14 (a wake between arm and commit is not lost)
// Spec: PK-16 (PARKED is published after the switch)
// Spec: SC-23 (an idle worker blocks and does not spin)
// Spec: PK-21 (a committed fiber runs no user code)
func TestExploreParkOnAWorker(t *testing.T) {
	for _, c := range []struct {
		workers int
		cfg     interleave.Config
	}{
		{1, interleave.Config{}},
		{2, either(interleave.Config{Bound: 1}, interleave.Config{Bound: 3})},
	} {
		t.Run(fmt.Sprint(c.workers), func(t *testing.T) {
			interleave.Check(t, c.cfg, func() {
				e := explore(c.workers, c.workers, 1)
				e.Enter()
				var published xatomic.Uint64
				armed := xatomic.NewSema()
				j := e.job(func(j *job) {
					t := j.task.Arm()
					published.Store(uint64(t))
					armed.Post()
					if r := j.task.Park(); r != park.Data && r != park.Closed {
						interleave.Failf("woken for %d", r)
					}
				})
				interleave.Go("early", func() {
					if t := published.Load(); t != 0 {
						j.task.Wake(park.Ticket(t), park.Closed, nil)
					}
				})
				interleave.Go("sure", func() {
					armed.Wait()
					j.task.Wake(park.Ticket(published.Load()), park.Data, nil)
				})
				e.Go(&j.task, nil)
				e.ended.Wait()
				e.Leave()
				e.Close()
				interleave.JoinAll()
			})
		})
	}
}

// Shrink runs while a worker sleeps or is about to, and while a new user enters the scheduler: the job still runs, and
// Close leaves no worker.
func TestExploreShutdownAgainstWake(t *testing.T) {
	for _, c := range []struct {
		workers, most int
		cfg           interleave.Config
	}{
		{1, 1, interleave.Config{}},
		{2, 2, either(interleave.Config{Bound: 1}, interleave.Config{})},         // a million executions
		{1, 2, either(interleave.Config{Bound: 1}, interleave.Config{Bound: 2})}, // one may stand by
	} {
		t.Run(fmt.Sprint(c.workers, " of ", c.most), func(t *testing.T) {
			interleave.Check(t, c.cfg, func() {
				e := explore(c.workers, c.most, 1)
				e.Enter()
				e.out(nothing)
				e.ended.Wait()
				e.Leave()
				e.left.Store(1)
				used, shrunk := xatomic.NewSema(), xatomic.NewSema()
				interleave.Go("user", func() {
					e.Enter()
					e.out(nothing)
					e.ended.Wait()
					e.Leave()
					used.Post()
				})
				interleave.Go("shrink", func() {
					e.Shrink()
					shrunk.Post()
				})
				used.Wait()
				shrunk.Wait()
				e.Close()
				interleave.JoinAll()
				if n := len(e.workers); n != 0 {
					interleave.Failf("%d workers left", n)
				}
			})
		})
	}
}

// A worker whose place was taken while its job was in native code comes back, becomes idle, and is immediately woken
// again for a job from outside. It is on the idle list once, or runs, and the counts are correct when all have left.
//
// Spec: SC-38 (a retiring worker hands its queue over)
// Spec: SC-43 (a worker is running, idle, blocked or held)
func TestExploreBackAgainstWake(t *testing.T) {
	interleave.Check(t, either(interleave.Config{Bound: 1}, interleave.Config{Bound: 2}), func() {
		e := explore(1, 2, 3)
		e.Enter()
		taken := xatomic.NewSema()
		e.out(func(j *job) {
			e.Go(&e.job(func(*job) { taken.Post() }).task, j.task.Worker())
			j.task.Block(j.task.Yield) // its place goes to another worker, which runs the job above; then it comes back
		})
		taken.Wait()
		e.out(nothing)
		e.ended.Wait()
		e.Leave()
		e.Close()
		interleave.JoinAll()
		if active, searchers := e.active.Load(), e.searchers.Load(); active != 0 || searchers != 0 {
			interleave.Failf("all have left, and %d are counted as active, %d as searching", active, searchers)
		}
	})
}

// A job starts two on its own worker, which yield; another worker steals from it, and each job runs once.
//
// Spec: SC-12 (a run-next slot can be stolen)
func TestExploreStealing(t *testing.T) {
	stolen := int64(0)
	interleave.Check(t, either(interleave.Config{Bound: 1}, interleave.Config{Bound: 3}), func() {
		e := explore(2, 2, 3)
		e.Enter()
		e.out(func(j *job) {
			w := j.task.Worker()
			for range 2 {
				e.Go(&e.job(func(j *job) { j.task.Yield() }).task, w)
			}
		})
		e.ended.Wait()
		e.Leave()
		e.Close()
		interleave.JoinAll()
		stolen += e.stats.stolen.Load()
	})
	if stolen == 0 {
		t.Error("nothing was stolen in any execution")
	}
}

// A job is stuck in native code until another job has run, which is queued behind it: a worker stands by, and takes its
// place. That also works if the job arrives when the standby has found nothing and is about to rest, and for as many
// jobs as there may be workers. Each job runs, without the monitor, and the counts are correct when all have left.
//
// Spec: SC-51 (a worker stands by while work is queued)
// Spec: SC-43 (a worker is running, idle, blocked or held)
func TestExploreStandIn(t *testing.T) {
	for _, c := range []struct {
		name          string
		brief, stuck  int // jobs that end, and then jobs that wait for the last one
		workers, most int
		cfg           interleave.Config
	}{
		{"one", 0, 1, 1, 2, either(interleave.Config{Bound: 2}, interleave.Config{Bound: 3})},
		{"one after another", 1, 1, 1, 2, either(interleave.Config{Bound: 1}, interleave.Config{Bound: 2})},
		{"two in a row", 0, 2, 1, 3, either(interleave.Config{Bound: 1}, interleave.Config{Bound: 2})},
		{"two workers", 0, 2, 2, 3, either(interleave.Config{Bound: 1}, interleave.Config{Bound: 2})},
	} {
		t.Run(c.name, func(t *testing.T) {
			stood := int64(0)
			interleave.Check(t, c.cfg, func() {
				e := explore(c.workers, c.most, c.brief+c.stuck+1)
				e.Enter()
				free := xatomic.NewGate()
				for range c.brief {
					e.out(nothing)
				}
				for range c.stuck {
					e.out(func(*job) { free.Wait() })
				}
				e.out(func(*job) { free.Open() })
				e.ended.Wait()
				e.Leave()
				e.Close()
				interleave.JoinAll()
				stood += e.stats.held.Load()
				e.checkLeft()
			})
			if stood == 0 {
				t.Error("none stood by in any execution: the test shows nothing")
			}
		})
	}
}

// checkLeft fails unless the counts are correct after all workers have left.
func (e *explored) checkLeft() {
	active, searchers, workers := e.active.Load(), e.searchers.Load(), len(e.workers)
	if active != 0 || searchers != 0 || workers != 0 {
		interleave.Failf("all have left: %d count as active, %d as searching, of %d", active, searchers, workers)
	}
	if e.standing.Load() {
		interleave.Failf("all have left, and one stands by")
	}
	for _, p := range e.places.all() {
		if p.Load() != nil {
			interleave.Failf("all have left, and one has a place")
		}
	}
}

// A worker enters Blocking while the standby takes its place, and then returns. Calls that end give up no more places
// than there are, and tasks that are queued meanwhile run.
//
// Spec: SC-40 (Blocking frees the place at once)
func TestExploreBlockAgainstStandIn(t *testing.T) {
	interleave.Check(t, either(interleave.Config{Bound: 2}, interleave.Config{Bound: 3}), func() {
		e := explore(1, 2, 2)
		e.Enter()
		free := xatomic.NewGate()
		e.out(func(j *job) {
			j.task.Block(free.Wait)
			if n := e.active.Load(); n > 2 {
				interleave.Failf("%d are active", n)
			}
		})
		e.out(func(*job) { free.Open() })
		e.ended.Wait()
		e.Leave()
		e.Close()
		interleave.JoinAll()
		e.checkLeft()
	})
}
