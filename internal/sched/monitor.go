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
	"github.com/coir-go/coir/internal/coro"
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
// (Worker.offer); wakes a worker for work that was queued and not offered; follows GOMAXPROCS; reports stalls; lets
// idle frames go, half of them every ten seconds, also for a while after all workers are idle; and once the
// scheduler has not been used for a few ticks, lets everything go.

const (
	tick      = 10 * time.Millisecond
	tickMin   = time.Millisecond
	quietFor  = 3                // ticks without a user before everything is let go
	trimEvery = 10 * time.Second // between two looks at the pool of idle frames: half of the unused ones go
	thinEvery = time.Second      // between two looks at the idle workers: half of those that were not used leave
	maxSpent  = 64
	trimKeep  = 256 // idle frames that are always kept while the scheduler is in use
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
	thinned time.Time
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
	surplus := s.thin(now)
	more := true // frames may be let go later, as far as is known
	if now.Sub(m.trimmed) >= trimEvery || s.pool.deep() {
		m.trimmed = now
		more = s.pool.trim(s.pool.spare()) > 0
	}
	switch {
	case busy:
		m.quiet = 0
	case s.users.Load() > 0: // all wait for something outside
		if surplus {
			s.after(thinEvery)
		} else if more && s.pool.large() {
			s.after(trimEvery) // give back what they did not use
		}
		m.armed.Store(false) // after that: the one that arms it now sets the timer
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
			s.mu.Lock()
			used := s.active.Load() > 0 || len(s.workers) > 0
			s.mu.Unlock()
			if used {
				s.watch() // used again meanwhile
			}
			return stalls
		}
	}
	s.after(m.every)
	return stalls
}

// thin lets half of the idle workers go that were not needed for a while, but for target of them. It reports whether
// there are more than that: then it must look again.
//
// Spec: SC-37 (a worker above the base number retires)
//
//go:norace
func (s *Scheduler) thin(now time.Time) (surplus bool) {
	m := &s.monitor
	s.mu.Lock()
	defer s.mu.Unlock()
	base := int(s.target.Load())
	if now.Sub(m.thinned) >= thinEvery {
		m.thinned = now
		for n := (s.low - base + 1) / 2; n > 0; n-- {
			s.sendHome()
		}
		s.low = s.idlers
	}
	return s.idlers > base
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
	s.places.grow(2 * int(n))
	s.target.Store(n)
	for _, w := range s.workers {
		if s.active.Load() <= n {
			break
		}
		s.hold(w)
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
	stacks := new(dump)
	s.mu.Lock()
	for _, w := range s.workers {
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
				slice := int64(passed) / int64(beat-w.seen.beat)
				s.slice.Store(slice)
				w.slice.Store(slice)
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
		if work && s.policy == nil && s.hold(w) { // a policy has one worker, and decides alone
			s.stats.held.Add(1)
			gave = true
		}
		if d := now.Sub(w.seen.since); s.stall > 0 && d >= s.stall && !w.seen.told {
			w.seen.told = true
			s.stats.stalls.Add(1)
			if s.onStall != nil {
				if fr := t.frame; fr != nil {
					stalls = append(stalls, Stall{Task: t, For: d, g: fr.g, dump: stacks})
				}
			}
		}
	}
	s.mu.Unlock()
	if gave {
		s.monitor.every = max(s.monitor.every/2, tickMin)
		s.monitor.fast = 4
	} else if s.monitor.fast > 0 && work { // those that replaced the held have just begun, and may be held as well
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
	Task *Task
	For  time.Duration
	g    uintptr
	dump *dump
}

// dump is the stacks of all goroutines, or empty until one is asked for. The stalls of a tick share it: there may be a
// thousand.
type dump struct{ text []byte }

// Stack returns the stack of the task's goroutine, or "" if it cannot be found. It is taken from a dump of all, which
// stops the world for a moment: it is called only for a stall that is reported.
func (st Stall) Stack() string {
	d := st.dump
	for size := 1 << 16; d.text == nil; size *= 4 {
		buf := make([]byte, size)
		buf[0], buf[1] = '\n', '\n' // an empty line is before each stack
		if n := 2 + runtime.Stack(buf[2:], true); n < size || size >= 1<<26 {
			d.text = buf[:n]
		}
	}
	head := "goroutine " + strconv.FormatUint(coro.NumberOf(st.g), 10) + " "
	_, text, found := bytes.Cut(d.text, []byte("\n\n"+head))
	if !found {
		return ""
	}
	text, _, _ = bytes.Cut(text, []byte("\n\n"))
	return head + string(text)
}

// stack is the stack of the calling goroutine.
func stack() []byte { return debug.Stack() }
