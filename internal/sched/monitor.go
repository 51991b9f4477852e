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

// The monitor finds workers that are held in native code (a mutex, a system call, a long computation) while tasks wait.
// A worker that is held cannot report it. The monitor is a timer, not a goroutine, and it is armed only while some
// worker runs a task. When all are idle it stops, so an idle process uses no CPU.
//
// Each tick it compares every worker's beat with the last one it saw. If a worker has not switched for a tick while
// there is work, the monitor marks it as held. The worker then no longer counts as active. Another worker takes its
// place, and begins with the tasks in its queue. While every tick finds held workers (for example, if a thousand fibers
// block natively), the ticks come faster.
//
// It also measures how long tasks run between two switches, which tells the workers when waking another one pays
// (Worker.offer). It wakes a worker for work that was queued and not offered, follows GOMAXPROCS, and reports stalls.
// It releases half of the unused idle frames every ten seconds, and continues for a while after all workers are idle.
// Once the scheduler has not been used for a few ticks, the monitor releases all workers and frames.

const (
	tick      = 10 * time.Millisecond
	tickMin   = time.Millisecond
	quietFor  = 3                // ticks without a user before everything is released
	trimEvery = 10 * time.Second // between two trims of the pool of idle frames, which release half of the unused ones
	thinEvery = time.Second      // between two checks of the idle workers, after which half of the unused ones leave
	maxSpent  = 64
	trimKeep  = 256 // idle frames that are always kept while the scheduler is in use
)

// watch is the monitor's record of a worker.
type watch struct {
	beat  uint64
	since time.Time // when the beat was first seen
	told  bool      // whether this stall has been reported
}

type monitor struct {
	armed atomic.Bool

	mu     sync.Mutex // guards timer and closed
	timer  *time.Timer
	closed bool

	whole   sync.Mutex // held for a whole tick; guards the rest
	last    time.Time
	every   time.Duration
	quiet   int // ticks since the scheduler was last used
	fast    int // the number of further ticks that are short, while there is work
	trimmed time.Time
	thinned time.Time
}

// watch arms the monitor. It is called when a worker becomes active.
//
//go:norace
func (s *Scheduler) watch() {
	m := &s.monitor
	if xatomic.Instrumented || m.armed.Load() { // an exploration has no time
		return
	}
	if bubble.Outside(s.home) {
		return // the timer would use the bubble's time; the woken worker will arm it
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || !m.armed.CompareAndSwap(false, true) {
		return
	}
	s.setNow(time.Now())
	if m.timer == nil {
		m.timer = time.AfterFunc(tick, s.tick)
	} else {
		m.timer.Reset(tick)
	}
}

// stop ends the monitor for good. It waits for a running tick, except for the tick's reports of stalls.
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
	ticks.Add(1)
	defer race.Enable()
	for _, st := range s.look() {
		s.onStall(st)
	}
}

// look is one tick. It returns the stalls to report.
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
	more := true // there may be frames to release later
	if now.Sub(m.trimmed) >= trimEvery || s.pool.deep() {
		m.trimmed = now
		more = s.pool.trim(s.pool.spare()) > 0
	}
	switch {
	case busy:
		m.quiet = 0
	case s.users.Load() > 0: // all tasks wait
		if surplus {
			s.after(thinEvery)
		} else if more && s.pool.large() {
			s.after(trimEvery) // to release what is not used
		}
		m.armed.Store(false) // last: a caller of watch that arms it now sets the timer
		if s.active.Load() > 0 || s.users.Load() == 0 {
			s.watch() // this changed after inspect had checked
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

// thin makes half of the idle workers that were not needed for a while leave, but keeps target of them. It reports
// whether there are more idle workers than that; the monitor must then call it again.
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

// procs returns GOMAXPROCS, or the largest allowed number of workers if that is less. It takes a lock of the Go
// scheduler.
//
//go:norace
func (s *Scheduler) procs() int32 { return int32(min(runtime.GOMAXPROCS(0), s.max)) }

// follow sets the number of workers to GOMAXPROCS, which the program may change, and which the Go runtime changes with
// the limits of the container. If it has grown, inspect wakes workers for the waiting tasks. If it has shrunk, workers
// lose their places as if they were held in native code; each notices at its next switch.
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

// after sets the timer for the next tick to d from now.
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

// inspect checks every worker. It reports whether any worker runs a task, and returns the stalls to report.
//
// Spec: SC-03 (a replaced worker does not count)
// Spec: SC-33 (a stuck worker is replaced after 10 ms)
// Spec: SC-34 (lack of progress triggers replacement)
//
//go:norace
func (s *Scheduler) inspect(now time.Time, passed time.Duration) (busy bool, stalls []Stall) {
	s.setNow(now)
	work := s.anyWork()
	gave := false
	stacks := new(dump)
	s.mu.Lock()
	for _, w := range s.workers {
		state := w.state.Load()
		if state != running && w.hasWork() {
			w.drain() // tasks were queued when it was held
		}
		if state != running && state != held {
			w.seen.since, w.seen.told = time.Time{}, false // the time while it rests does not count
			continue
		}
		busy = true
		beat := w.beat
		if beat != w.seen.beat {
			if passed < 10*tick { // otherwise the monitor was stopped
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
		if t == nil && s.policy == nil || w.beat != beat {
			continue
		}
		if work && s.policy == nil && s.hold(w) { // a policy has one worker, and decides alone
			s.stats.held.Add(1)
			gave = true
		}
		if d := now.Sub(w.seen.since); s.stall > 0 && d >= s.stall && !w.seen.told {
			t, g := w.runs(t)
			if g == 0 { // the task is about to begin, on a thread that the system does not run; the next tick looks again
				continue
			}
			w.seen.told = true
			s.stats.stalls.Add(1)
			if s.onStall != nil {
				stalls = append(stalls, Stall{Task: t, For: d, g: g, dump: stacks})
			}
		}
	}
	s.mu.Unlock()
	if gave {
		s.monitor.every = max(s.monitor.every/2, tickMin)
		s.monitor.fast = 4
	} else if s.monitor.fast > 0 && work { // the replacements have just begun, and may become held as well
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

// runs returns the task that the worker runs, given its cur, and the goroutine. Between two tasks, where a policy may
// call functions of the program, the task is nil. The goroutine is 0 if it is unknown.
//
//go:norace
func (w *Worker) runs(cur *Task) (*Task, uintptr) {
	if cur == nil {
		return nil, w.base.g
	}
	if fr := cur.frame; fr != nil {
		return cur, fr.g
	}
	if fr := w.picker; fr != nil { // cur has ended
		return nil, fr.g
	}
	return nil, 0
}

// spare returns how many idle frames to keep, after a period in which low frames were not needed. It starts a new
// period.
//
//go:norace
func (p *pool) spare() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	keep := max(p.n-(p.low+1)/2, trimKeep)
	p.low = p.n
	return keep
}

// deep reports whether many spent frames are waiting to be released.
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

// Stall describes a task that has run for a long time without a switch, or a policy that has taken a long time to pick
// a task.
type Stall struct {
	Task *Task // nil if it is the policy
	For  time.Duration
	g    uintptr
	dump *dump
}

// dump holds the stacks of all goroutines. It is filled when the first stack is needed. The stalls of a tick share it,
// because there may be a thousand.
type dump struct{ text []byte }

// mostDumped is the largest number of goroutines whose stacks are taken to find one of them. They stop the world for
// some 20 us each: 0.2 s in all.
const mostDumped = 10_000

// Stack returns the stack of the goroutine, or "" if it cannot be found. It takes a dump of all stacks, which stops the
// world, so it is called only for a stall that is reported. It takes no dump if there are too many goroutines.
func (st Stall) Stack() (text string, dumped bool) {
	d := st.dump
	if d.text == nil {
		if runtime.NumGoroutine() > mostDumped {
			return "", false
		}
		d.text = AllStacks()
	}
	return d.of(st.g), true
}

// of returns the stack of a goroutine, or "".
//
//go:norace
func (d *dump) of(g uintptr) string {
	head := "goroutine " + strconv.FormatUint(coro.NumberOf(g), 10) + " "
	_, text, found := bytes.Cut(d.text, []byte("\n\n"+head))
	if !found {
		return ""
	}
	text, _, _ = bytes.Cut(text, []byte("\n\n"))
	return head + string(text)
}

// AllStacks returns the stacks of all goroutines, each after an empty line, but no more than the first 64 MB. It stops
// the world for as long as it takes to print them. That takes as long if they do not fit, so the buffer is large enough
// for most programs.
//
//go:norace
func AllStacks() []byte {
	const most = 1 << 26
	for size := min(1<<16+runtime.NumGoroutine()*2048, most); ; size = min(4*size, most) {
		buf := make([]byte, size)
		buf[0], buf[1] = '\n', '\n'
		if n := 2 + runtime.Stack(buf[2:], true); n < size || size == most {
			return buf[:n]
		}
	}
}

// stack returns the stack of the calling goroutine.
func stack() []byte { return debug.Stack() }
