package sched

import (
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/coir-go/coir/internal/bubble"
	"github.com/coir-go/coir/internal/clock"
	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/xatomic"
)

// Config configures a scheduler.
type Config struct {
	Workers    int                        // how many run tasks at a time; 0 means GOMAXPROCS, even when that changes
	MaxWorkers int                        // how many there may be, including those held in native code
	Clock      clock.Clock                // nil for a new real clock
	Thunk      func(*Task) Thunk          // returns what a task runs
	Group      func(*Task) unsafe.Pointer // returns the group of a task, for ParkFor
	Policy     Policy                     // nil for the queues of this package
	Observer   Observer                   // may be nil
	StallAfter time.Duration              // how long a task may run without a switch before OnStall is called
	OnStall    func(Stall)                // if nil, stalls are only counted
}

// Clock, Policy and Observer are the only interfaces to time, order and events. An unused Policy or Observer costs a
// nil check.

// Policy decides the order in which runnable tasks run, instead of this package's queues. Workers call it concurrently
// unless the scheduler has only one. Inject and Len are also called from outside, at any time.
type Policy interface {
	Push(*Task)
	Inject(*Task) // Push from outside: by a timer, or by a goroutine
	Pick() *Task  // nil if there is none
	Len() int
}

// Observer is notified of what tasks do. Its methods are called where that happens, and must not block.
type Observer interface {
	Parked(*Task)
	Readied(t, by *Task) // by is the task that ended the wait of t, or nil if unknown or not a task
}

// Scheduler runs tasks on workers. Workers start when there is something to run, and leave when nothing can become
// runnable: an idle scheduler has no goroutine.
//
// A scheduler that is made in a bubble of testing/synctest belongs to the bubble, as do its workers and timers. Its
// tasks can be made runnable only from inside the bubble. A bubble cannot end while such workers exist, and no timer
// can stop them, because the bubble's time stands still once its main function has returned. So the workers leave as
// soon as the scheduler is not used. A scheduler that was made outside can be given work from a bubble, but must not
// start a worker or set a timer there.
type Scheduler struct {
	home     bubble.ID
	owner    park.Owner   // the owner of its tasks: the scheduler itself
	target   atomic.Int32 // how many workers run tasks at a time; changed by follow, under mu
	follows  bool         // target is GOMAXPROCS
	max      int
	clock    clock.Clock
	thunk    func(*Task) Thunk
	group    func(*Task) unsafe.Pointer
	policy   Policy
	observer Observer
	plain    bool          // there is neither policy nor observer
	now      atomic.Uint32 // the time since epoch, in ticks, as last set by the monitor or by a worker that woke
	epoch    time.Time
	stall    time.Duration
	onStall  func(Stall)

	global list
	pool   pool

	active    xatomic.Int32 // workers that are neither idle nor held nor blocked
	searchers xatomic.Int32 // active workers that look for work, or were woken to look for it
	users     xatomic.Int64 // see Enter

	places    places       // the active workers, for those that look for work
	standing  xatomic.Bool // a worker stands by, or is about to: see stand.go
	spareness spareness    // used by the worker that stands by
	slice     atomic.Int64 // the initial slice of a new worker: the last one measured

	mu      xatomic.Mutex
	idle    *Worker // through Worker.idleNext
	idlers  int
	low     int           // the smallest number of idle workers since the last call of thin
	workers []*Worker     // all workers, each at its index
	emptied *xatomic.Gate // opened when the last worker leaves
	gone    bool          // the scheduler is closed: workers leave, and none is started

	closing xatomic.Mutex // held by Close
	monitor monitor
	stats   counters
}

// New returns a scheduler. It starts no goroutine.
//
//go:norace
func New(c Config) *Scheduler {
	s := &Scheduler{
		home:     bubble.Here(),
		follows:  c.Workers == 0,
		max:      c.MaxWorkers,
		clock:    c.Clock,
		thunk:    c.Thunk,
		group:    c.Group,
		policy:   c.Policy,
		observer: c.Observer,
		plain:    c.Policy == nil && c.Observer == nil,
		stall:    c.StallAfter,
		onStall:  c.OnStall,
		epoch:    time.Now(),
	}
	s.owner = s
	if s.clock == nil {
		s.clock = clock.NewReal()
	}
	if s.follows {
		s.target.Store(s.procs())
	} else {
		s.target.Store(int32(c.Workers))
	}
	s.slice.Store(wakeWorth) // unknown yet, so wake workers
	s.places.grow(2 * int(s.target.Load()))
	race.Release(unsafe.Pointer(s))
	return s
}

// Has reports whether w is a worker of this scheduler. w may be nil.
//
//go:norace
func (s *Scheduler) Has(w *Worker) bool { return w != nil && w.s == s }

// Home returns the bubble that the scheduler was made in.
func (s *Scheduler) Home() bubble.ID { return s.home }

// Clock returns the clock that this scheduler's tasks wait by.
func (s *Scheduler) Clock() clock.Clock { return s.clock }

// add adds a new worker to the list of all. The caller holds mu. The list is copied by a loop, because copy and append
// report their accesses to the race detector even in a go:norace function.
//
//go:norace
func (s *Scheduler) add(w *Worker) {
	n := len(s.workers)
	if n == cap(s.workers) {
		ws := make([]*Worker, n, max(4, 2*n))
		for i := range ws {
			ws[i] = s.workers[i]
		}
		s.workers = ws
	}
	s.workers = s.workers[:n+1]
	s.workers[n] = w
	w.index = n
}

// remove removes a worker from the list of all, and returns how many are left. The caller holds mu.
//
//go:norace
func (s *Scheduler) remove(w *Worker) int {
	n := len(s.workers) - 1
	last := s.workers[n]
	s.workers[w.index] = last
	last.index = w.index
	s.workers[n] = nil
	s.workers = s.workers[:n]
	if n == 0 {
		s.workers = nil // the list may have been long
	}
	return n
}

// Enter tells the scheduler that a user from outside begins to use it. Leave ends that use, when every task of the user
// has ended. Only a scheduler without users may close or shrink. Every task belongs to the tree of a user, so it is
// enough to count the users, and tasks need not be counted (see docs/design/0004).
func (s *Scheduler) Enter() { s.users.Add(1) }

// Leave ends one Enter. After the last one the monitor releases everything; in a bubble Leave does so immediately.
//
//go:norace
func (s *Scheduler) Leave() {
	// Spec: SH-01 (roots of fiber trees are counted)
	// Spec: SH-12 (the last fiber wakes who waits for empty)
	switch {
	case s.users.Add(-1) != 0:
	case s.home == 0:
		s.watch()
	default:
		s.mu.Lock()
		if s.users.Load() == 0 {
			s.dismiss()
		}
		s.mu.Unlock()
	}
}

// Go makes a new task runnable, on the worker here if that belongs to this scheduler.
//
//go:norace
func (s *Scheduler) Go(t *Task, here *Worker) {
	if s.Has(here) {
		here.tally.spawned++
		here.push(t)
	} else {
		s.stats.spawned.Add(1)
		s.inject(t)
	}
}

// GoWaiting is like Go, for a task that begins with a wait: the end of the wait makes it runnable.
//
//go:norace
func (s *Scheduler) GoWaiting(t *Task, here *Worker) {
	if s.observer != nil {
		s.observer.Parked(t)
	}
	if s.Has(here) {
		here.tally.spawned++
	} else {
		s.stats.spawned.Add(1)
	}
}

// inject queues a task that was made runnable by code that does not run on a worker of this scheduler.
//
//go:norace
func (s *Scheduler) inject(t *Task) {
	if s.home != 0 && bubble.Outside(s.home) {
		race.Enable() // as the waker's operation would do, because the panic may be recovered
		panic("coir: a fiber that runs " + s.home.String() + " was started or woken by code that runs " +
			bubble.Here().String() + ", which Go does not allow: make the channel, and what uses it, inside the bubble")
	}
	if s.policy != nil {
		s.policy.Inject(t)
	} else {
		t.enqueue()
		s.global.push(t)
	}
	if s.active.Load() < s.target.Load() || s.slice.Load() >= wakeWorth {
		s.wake()
	}
}

// Shrink releases every worker and frame if the scheduler has no users, and reports whether it did. The next Go starts
// workers again.
//
//go:norace
func (s *Scheduler) Shrink() bool {
	s.mu.Lock()
	if s.users.Load() != 0 || s.emptied != nil || s.idlers != len(s.workers) {
		s.mu.Unlock()
		return false
	}
	emptied := s.dismiss()
	s.mu.Unlock()
	emptied.Wait()
	s.pool.trim(0)
	return true
}

// dismiss tells the idle workers to leave, and returns a gate that opens when no worker is left. The caller holds mu.
//
//go:norace
func (s *Scheduler) dismiss() *xatomic.Gate {
	emptied := s.emptied
	if emptied == nil {
		emptied = xatomic.NewGate()
		if len(s.workers) == 0 {
			emptied.Open()
		} else {
			s.emptied = emptied
		}
	}
	for s.idle != nil {
		s.sendHome()
	}
	return emptied
}

// sendHome makes one idle worker leave. The caller holds mu.
//
//go:norace
func (s *Scheduler) sendHome() {
	w := s.takeIdle()
	w.leaving = true
	w.sema.Post()
}

// Close stops the scheduler: every worker leaves, and every frame is released. The clock, which has no goroutine,
// continues, because contexts outlive their runtime and goroutines may wait by them. The caller ensures that users is 0
// and stays 0.
//
//go:norace
func (s *Scheduler) Close() {
	// Spec: SH-06 (close then joins the workers)
	// Spec: SH-08 (after close no goroutine is left)
	// Spec: SH-11 (close is idempotent)
	s.closing.Lock()
	defer s.closing.Unlock()
	s.monitor.stop()
	s.mu.Lock()
	s.gone = true
	emptied := s.dismiss()
	s.mu.Unlock()
	emptied.Wait()
	s.pool.trim(0)
}
