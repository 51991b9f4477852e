package sched

import (
	"bytes"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/coir-go/coir/internal/bubble"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/xatomic"
)

// The monitor finds what the workers themselves cannot say: that one of them is held in native code (a mutex, a system
// call, a long computation) while tasks wait. It is a timer, not a goroutine, and it is armed only while some worker
// runs something; when all are idle it stops, so a process at rest uses no CPU.
//
// Each tick it compares every worker's beat with the last one it saw. A worker that has not switched for a tick while
// there is work is held: it no longer counts as active, and another takes its place, first from its queue. As long as
// that goes on tick after tick (a thousand fibers that all block natively) the ticks come faster.
//
// It also measures how long tasks run between two switches, which tells the workers when waking another one pays
// (Worker.offer); wakes somebody for work that was queued and not offered; follows GOMAXPROCS; reports stalls; lets
// idle frames go, half of them every ten seconds, also for a while after all workers are idle; and once nobody has
// used the scheduler for a few ticks, lets everything go.

const (
	tick      = 10 * time.Millisecond
	tickMin   = time.Millisecond
	quietFor  = 3                // ticks without a user before everything is let go
	trimEvery = 10 * time.Second // between two looks at the pool of idle frames: half of what nobody used is let go
	maxSpent  = 64
	trimKeep  = 256 // idle frames that are always kept while somebody uses the scheduler
)

// watch is what the monitor remembers of a worker.
type watch struct {
	beat  uint64
	since time.Time // when the beat was first seen
	told  bool      // this stall has been reported
}

type monitor struct {
	armed atomic.Bool

	mu     sync.Mutex // guards timer and closed
	timer  *time.Timer
	closed bool

	whole   sync.Mutex // held for a whole tick; guards the rest
	last    time.Time
	every   time.Duration
	quiet   int // ticks since anybody used the scheduler
	fast    int // ticks that stay short, while there is work
	trimmed time.Time
}

// watch arms the monitor. It is called when a worker becomes active.
//
//go:norace
func (s *Scheduler) watch() {
	m := &s.monitor
	if xatomic.Instrumented || m.armed.Load() { // an exploration knows no time
		return
	}
	if bubble.Abroad(s.home) {
		return // the timer would run by another time. The worker that has been woken arms it
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || !m.armed.CompareAndSwap(false, true) {
		return
	}
	if m.timer == nil {
		m.timer = time.AfterFunc(tick, s.tick)
	} else {
		m.timer.Reset(tick)
	}
}

// stop ends the monitor for good. A tick that is under way finishes first, but for what it tells of stalls.
//
//go:norace
func (m *monitor) stop() {
	m.mu.Lock()
	m.closed = true
	if m.timer != nil {
		m.timer.Stop()
	}
	m.mu.Unlock()
	m.whole.Lock()
	defer m.whole.Unlock()
}

//go:norace
func (s *Scheduler) tick() {
	race.Acquire(unsafe.Pointer(s)) // as in Worker.run
	race.Disable()
	defer race.Enable()
	for _, st := range s.look() {
		s.onStall(st)
	}
}

// look is one tick. It returns the stalls to tell of.
//
// Spec: SC-26 (parked fibers cost no CPU)
// Spec: SC-32 (the monitor is advisory)
// Spec: SH-14 (an unused default runtime keeps no goroutine)
//
//go:norace
func (s *Scheduler) look() (stalls []Stall) {
	m := &s.monitor
	m.whole.Lock()
	defer m.whole.Unlock()
	m.mu.Lock()
	closed := m.closed
	m.mu.Unlock()
	if closed {
		return nil
	}
	if s.follows {
		s.follow()
	}
	now := time.Now()
	busy, stalls := s.inspect(now, now.Sub(m.last))
	m.last = now
	more := true // frames may be let go later, as far as is known
	if now.Sub(m.trimmed) >= trimEvery || s.pool.deep() {
		m.trimmed = now
		more = s.pool.trim(s.pool.spare()) > 0
	}
	switch {
	case busy:
		m.quiet = 0
	case s.users.Load() > 0: // all wait for something outside
		if more && s.pool.large() {
			s.after(trimEvery) // give back what they did not use
		}
		m.armed.Store(false) // after that: whoever arms now sets the timer
		if s.active.Load() > 0 || s.users.Load() == 0 {
			s.watch() // it changed after we had looked
		}
		return stalls
	case m.quiet < quietFor:
		m.quiet++
	default:
		m.quiet = 0
		if s.Shrink() {
			m.armed.Store(false)
			if s.active.Load() > 0 || len(*s.workers.Load()) > 0 {
				s.watch() // used again meanwhile
			}
			return stalls
		}
	}
	s.after(m.every)
	return stalls
}

// procs is GOMAXPROCS, as far as there may be so many workers. To ask takes a lock of the Go scheduler.
//
//go:norace
func (s *Scheduler) procs() int32 { return int32(min(runtime.GOMAXPROCS(0), s.max)) }

// follow makes the number of workers that of GOMAXPROCS, which the program changes, or the Go runtime with the limits
// of its container. If it has grown, inspect wakes workers for what there is to do. If it has shrunk, workers lose
// their places as if they were held in native code: each notices at its next switch.
//
// Spec: SC-01 (workers are goroutines, GOMAXPROCS of them)
//
//go:norace
func (s *Scheduler) follow() {
	n := s.procs()
	if n == s.target.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.target.Store(n)
	for _, w := range *s.workers.Load() {
		if s.active.Load() <= n {
			break
		}
		if w.state.Load() == running {
			w.state.Store(held)
			w.drain()
			s.active.Add(-1)
		}
	}
	for s.idlers > int(n) {
		s.sendHome()
	}
}

// after has the next tick come after d.
//
//go:norace
func (s *Scheduler) after(d time.Duration) {
	m := &s.monitor
	m.mu.Lock()
	if !m.closed {
		m.timer.Reset(d)
	}
	m.mu.Unlock()
}

// inspect looks at every worker. It reports whether any runs something, and the stalls to tell of.
//
// Spec: SC-03 (a replaced worker does not count)
// Spec: SC-33 (a stuck worker is replaced after 10 ms)
// Spec: SC-34 (lack of progress triggers replacement)
//
//go:norace
func (s *Scheduler) inspect(now time.Time, passed time.Duration) (busy bool, stalls []Stall) {
	work := s.anyWork()
	gave := false
	s.mu.Lock()
	for _, w := range *s.workers.Load() {
		state := w.state.Load()
		if state != running && w.hasWork() {
			w.drain() // put there as it was held
		}
		if state != running && state != held {
			continue
		}
		busy = true
		beat := w.beat
		if beat != w.seen.beat {
			if passed < 10*tick { // else the monitor was off
				s.slice = int64(passed) / int64(beat-w.seen.beat)
				w.slice.Store(s.slice)
			}
			w.seen = watch{beat: beat, since: now}
			continue
		}
		if w.seen.since.IsZero() {
			w.seen.since = now
		}
		t := w.cur
		if t == nil || w.beat != beat {
			continue
		}
		if work && state == running && s.policy == nil { // a policy has one worker, and decides alone
			w.state.Store(held)
			w.drain()
			s.active.Add(-1)
			s.stats.held.Add(1)
			gave = true
		}
		if d := now.Sub(w.seen.since); s.stall > 0 && d >= s.stall && !w.seen.told {
			w.seen.told = true
			s.stats.stalls.Add(1)
			if s.onStall != nil {
				if fr := t.frame; fr != nil {
					stalls = append(stalls, Stall{Task: t, For: d, goid: fr.goid})
				}
			}
		}
	}
	s.mu.Unlock()
	for i := range stalls {
		stalls[i].Stack = stackOf(stalls[i].goid)
	}
	if gave {
		s.monitor.every = max(s.monitor.every/2, tickMin)
		s.monitor.fast = 4
	} else if s.monitor.fast > 0 && work { // whoever replaced the held has just begun, and may be held as well
		s.monitor.fast--
	} else {
		s.monitor.every = tick
	}
	if work {
		s.stats.pressed.Add(1)
		s.wake()
	}
	return busy, stalls
}

// spare is how many idle frames to keep after a while in which low were never asked for.
//
//go:norace
func (p *pool) spare() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	keep := max(p.n-(p.low+1)/2, trimKeep)
	p.low = p.n
	return keep
}

// deep reports whether many spent frames wait to be let go.
//
//go:norace
func (p *pool) deep() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.nspent > maxSpent
}

//go:norace
func (p *pool) large() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.n > trimKeep
}

// Stall tells of a task that has run for long without a switch.
type Stall struct {
	Task  *Task
	For   time.Duration
	Stack string // of the task's goroutine, when it was noticed
	goid  uint64
}

// stackOf finds one goroutine's stack in a dump of all. That stops the world for a moment, so it is done only for a
// program that asked to be told of stalls, once a stall.
func stackOf(goid uint64) string {
	buf := make([]byte, 1<<16)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) || len(buf) >= 1<<26 {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 4*len(buf))
	}
	head := []byte("goroutine " + strconv.FormatUint(goid, 10) + " ")
	for _, one := range bytes.Split(buf, []byte("\n\n")) {
		if bytes.HasPrefix(one, head) {
			return string(one)
		}
	}
	return ""
}

// stack is the stack of the calling goroutine.
func stack() []byte { return debug.Stack() }
