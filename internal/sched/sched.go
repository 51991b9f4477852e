package sched

import (
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/coir-go/coir/internal/bubble"
	"github.com/coir-go/coir/internal/clock"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/xatomic"
)

// Config is what a scheduler is made of.
type Config struct {
	Workers    int               // how many run tasks at once; 0: GOMAXPROCS, also when that changes
	MaxWorkers int               // how many there may be, with those held in native code
	Clock      clock.Clock       // nil: a real one of its own
	Thunk      func(*Task) Thunk // what a task runs
	Policy     Policy            // nil: the queues of this package
	Observer   Observer          // nil: nobody
	StallAfter time.Duration     // how long a task may run without a switch before OnStall is told
	OnStall    func(Stall)       // nil: stalls are only counted
}

// The three doors. Time, order and events come in through them and through nothing else; each costs a nil check when
// it is not used.

// Policy decides the order in which runnable tasks go on, in place of this package's queues. It is called by one worker
// at a time only if the scheduler has one worker; Inject and Len also from outside, at any time.
type Policy interface {
	Push(*Task)
	Inject(*Task) // is Push from outside: by a timer, or by a goroutine
	Pick() *Task  // nil if there is none
	Len() int
}

// Observer is told what tasks do. It is called where the thing happens and must neither block nor wait.
type Observer interface {
	Parked(*Task)
	Readied(*Task)
}

// Scheduler runs tasks on workers. Workers are started when there is something to run, and leave when there is nothing
// left that could run: a scheduler at rest holds no goroutine.
//
// A scheduler that is made in a bubble of testing/synctest belongs to it, as its workers and timers do. Its tasks can
// be made runnable from inside only, and its workers leave as soon as it is not used: a bubble cannot end before them,
// and once its main function has returned no time passes in it that could tell them to. A scheduler of the world
// outside can be given work from a bubble, but must not start a worker or set a timer there.
type Scheduler struct {
	home     bubble.ID
	target   atomic.Int32 // how many workers run tasks at once. Changed by follow, under mu
	follows  bool         // target is GOMAXPROCS
	max      int
	clock    clock.Clock
	thunk    func(*Task) Thunk
	policy   Policy
	observer Observer
	plain    bool // it has neither policy nor observer
	stall    time.Duration
	onStall  func(Stall)

	global list
	pool   pool

	active    xatomic.Int32 // workers that are neither idle nor held nor blocked
	searchers xatomic.Int32 // of those: out for work, or woken for it
	users     xatomic.Int64 // see Enter

	mu      xatomic.Mutex
	idle    *Worker // through Worker.idleNext
	idlers  int
	workers xatomic.Pointer[[]*Worker] // replaced whole, under mu
	emptied *xatomic.Gate              // opened when the last worker has left
	gone    bool                       // closed: workers leave, none is started
	slice   int64                      // what a new worker takes its slice to be: the last one measured

	closing xatomic.Mutex // held by Close
	monitor monitor
	stats   counters
}

// New makes a scheduler. It starts nothing.
//
//go:norace
func New(c Config) *Scheduler {
	s := &Scheduler{
		home:     bubble.Here(),
		follows:  c.Workers == 0,
		max:      c.MaxWorkers,
		clock:    c.Clock,
		thunk:    c.Thunk,
		policy:   c.Policy,
		observer: c.Observer,
		plain:    c.Policy == nil && c.Observer == nil,
		stall:    c.StallAfter,
		onStall:  c.OnStall,
	}
	if s.clock == nil {
		s.clock = clock.NewReal()
	}
	if s.follows {
		s.target.Store(s.procs())
	} else {
		s.target.Store(int32(c.Workers))
	}
	s.slice = wakeWorth // nothing is known yet: wake
	s.workers.Store(new([]*Worker))
	race.Release(unsafe.Pointer(s))
	return s
}

// Has reports whether w is a worker of this scheduler. It may be nil.
//
//go:norace
func (s *Scheduler) Has(w *Worker) bool { return w != nil && w.s == s }

// Home is the bubble that the scheduler was made in.
func (s *Scheduler) Home() bubble.ID { return s.home }

// Clock returns the clock that this scheduler's tasks wait by.
func (s *Scheduler) Clock() clock.Clock { return s.clock }

// replaceWorkers takes one worker out of the list, or puts one in, and returns how many there are. The caller holds mu.
// The list is copied by hand: copy and append tell the race detector of what they touch, wherever they stand.
//
//go:norace
func (s *Scheduler) replaceWorkers(out, in *Worker) int {
	old := *s.workers.Load()
	ws := make([]*Worker, len(old)+1)
	n := 0
	for _, w := range old {
		if w != out {
			ws[n] = w
			n++
		}
	}
	if in != nil {
		ws[n] = in
		n++
	}
	ws = ws[:n]
	s.workers.Store(&ws)
	return n
}

// Enter says that somebody outside is about to use the scheduler; Leave, that it has done so and every task of its own
// has ended. Only a scheduler without users may close or shrink. This is what the specifications count tasks for:
// tasks live inside a user's tree, so to count the users is enough.
func (s *Scheduler) Enter() { s.users.Add(1) }

// Leave ends one Enter. After the last one, the monitor sees to it that everything is let go; in a bubble it is let go
// at once.
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

// Go makes a new task runnable, near the caller if near is a worker of this scheduler.
//
//go:norace
func (s *Scheduler) Go(t *Task, near *Worker) {
	if s.Has(near) {
		near.tally.spawned++
		near.push(t)
	} else {
		s.stats.spawned.Add(1)
		s.inject(t)
	}
}

// inject queues a task from outside.
//
//go:norace
func (s *Scheduler) inject(t *Task) {
	if s.home != 0 && bubble.Abroad(s.home) {
		race.Enable() // as the waker's operation would have: the panic may be recovered
		panic("coir: a fiber that runs " + s.home.String() + " was started or woken by code that runs " +
			bubble.Here().String() + ", which Go does not allow: make the channel, and what uses it, inside the bubble")
	}
	if s.policy != nil {
		s.policy.Inject(t)
	} else {
		t.enqueue()
		s.global.push(t)
	}
	s.wake()
}

// Shrink lets go of every worker and frame, if nobody uses the scheduler. It reports whether it did. The next Go starts
// anew.
//
//go:norace
func (s *Scheduler) Shrink() bool {
	s.mu.Lock()
	if s.users.Load() != 0 || s.emptied != nil || s.idlers != len(*s.workers.Load()) {
		s.mu.Unlock()
		return false
	}
	emptied := s.dismiss()
	s.mu.Unlock()
	emptied.Wait()
	s.pool.trim(0)
	return true
}

// dismiss tells the idle workers to leave. The gate is opened when no worker is left. The caller holds mu.
//
//go:norace
func (s *Scheduler) dismiss() *xatomic.Gate {
	emptied := s.emptied
	if emptied == nil {
		emptied = xatomic.NewGate()
		if len(*s.workers.Load()) == 0 {
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

// sendHome tells one idle worker to leave. The caller holds mu.
//
//go:norace
func (s *Scheduler) sendHome() {
	w := s.idle
	s.idle, w.idleNext = w.idleNext, nil
	s.idlers--
	w.leaving = true
	w.sema.Post()
}

// Close stops the scheduler for good, once nobody uses it: every worker leaves, every frame is let go. The clock goes on,
// because contexts outlive their runtime and goroutines may wait by them; it holds no goroutine. The caller makes sure
// that users is 0 and stays 0.
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
