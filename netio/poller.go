//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package netio

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coir-go/coir"
)

// A poller is one fiber that is blocked in the kernel until a descriptor has an event. It wakes the waiters, and runs
// nothing else but callbacks, which are short.
//
// The first descriptor that has to wait starts it, and the last one that is closed ends it, with the descriptors that
// it needs itself. So a program without open connections has no goroutine of this package, and no descriptor.
//
// The kernel hands back a slot of the table and a generation, never the number of a file: an event that was reported
// before its descriptor was closed finds another generation in the slot, and is dropped.
//
// Spec: TK-17 (descriptor readiness completes a ticket)
type poller struct {
	kernel  kernel
	stopped atomic.Bool
	events  [batch]event       // used by deliver, like found
	found   [batch]*descriptor // descriptors of events that have not been delivered yet

	mu    sync.Mutex // guards what follows
	table []*descriptor
	free  []uint32
	used  int
	gen   uint32
	ended bool // the descriptors of kernel have been closed
}

// current is the poller that new descriptors join. A poller that has ended is never used again.
var current struct {
	sync.Mutex
	p *poller
}

// An event is a report of the kernel about a descriptor.
type event struct {
	slot, gen   uint32
	read, write bool
	ended       bool // no further event may come
}

// batch is the largest number of events that one call of the kernel returns.
const batch = 128

// join gives d a slot of the current poller. The caller holds d.mu.
func join(d *descriptor) (*poller, error) {
	if inBubble() {
		return nil, errBubble
	}
	if coir.Simulated(context.Background()) != nil {
		return nil, errReal
	}
	current.Lock()
	defer current.Unlock()
	p := current.p
	if p == nil {
		p = new(poller)
		if err := p.kernel.open(); err != nil {
			return nil, err
		}
		current.p = p
		go p.run()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.free); n > 0 {
		d.slot = p.free[n-1]
		p.free = p.free[:n-1]
		p.table[d.slot] = d
	} else {
		d.slot = uint32(len(p.table))
		p.table = append(p.table, d)
	}
	p.used++
	p.gen++
	d.gen = p.gen
	return p, nil
}

var errBubble = errors.New("netio: a wait for the network or a deadline in a bubble of testing/synctest would " +
	"not follow the bubble's time: test with package sim, which simulates connections, or use net.Pipe in the bubble")

var errReal = errors.New("netio: made outside of the simulation, where no fiber can wait for it: " +
	"call netio.Listen and netio.Dial in the function that sim runs")

// inBubble reports whether the caller is in a bubble of testing/synctest. Only there, or if the machine's clock is very
// wrong, a time has no monotonic reading, which Round removes. The stack distinguishes the two cases.
func inBubble() bool {
	if now := time.Now(); now != now.Round(0) {
		return false
	}
	var b [128]byte
	return bytes.Contains(b[:runtime.Stack(b[:], false)], []byte("synctest bubble"))
}

// leave releases a slot. When the last is released, the poller ends.
func leave(p *poller, slot uint32) {
	current.Lock()
	p.mu.Lock()
	p.table[slot] = nil
	p.free = append(p.free, slot)
	p.used--
	last := p.used == 0
	p.mu.Unlock()
	if last && current.p == p {
		current.p = nil
	}
	current.Unlock()
	if last {
		p.stopped.Store(true)
		p.wake()
	}
}

// wake makes the wait in the kernel return. It does nothing when the poller has ended: the number that it would write
// to may have been given to another file.
func (p *poller) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.kernel.wake()
	}
}

// end closes the descriptors of the poller.
func (p *poller) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.kernel.close()
}

// run delivers events until the poller is stopped. It is a fiber of the default runtime, so that the fibers it wakes
// run next on its own worker: an event then costs a switch between fibers. A goroutine would have to wake a worker,
// which is another goroutine, and then wait for a processor itself.
//
// If the default runtime is closed, run continues as a goroutine, for other runtimes and goroutines.
//
// A callback that calls runtime.Goexit ends this goroutine, and another one continues. A callback that panics ends the
// program.
func (p *poller) run() {
	defer func() {
		if p.stopped.Load() {
			p.end()
		} else {
			go p.run()
		}
	}()
	err := coir.Run(context.Background(), func(ctx context.Context, _ *coir.Nursery) error {
		defer context.AfterFunc(ctx, p.wake)() // it may be called when the poller has ended
		return p.deliver(ctx)
	})
	if err != nil {
		_ = p.deliver(context.Background())
	}
}

// deliver delivers events until the poller is stopped, or ctx ends.
//
// After it has woken others it yields to them. Then it checks for more events without blocking, which is cheap, and
// only then it blocks. A thread that is blocked in the kernel resumes even when all processors are busy; Go checks its
// own poller only every ten milliseconds then.
func (p *poller) deliver(ctx context.Context) error {
	block := func() (int, error) { return p.kernel.wait(&p.events, true), nil }
	p.wakeFound(batch) // the events that a Goexit has left
	for n := 0; !p.stopped.Load(); {
		if n == 0 {
			n, _ = coir.Blocking(ctx, block)
		} else {
			_ = coir.Yield(ctx)
			n = p.kernel.wait(&p.events, false)
		}
		if p.stopped.Load() { // before it blocks again: wait has taken the signal
			return nil
		}
		p.mu.Lock()
		for i, e := range p.events[:n] {
			if d := p.table[e.slot]; d != nil && d.gen == e.gen {
				p.found[i] = d
			}
		}
		p.mu.Unlock()
		p.wakeFound(n)
		if err := coir.Ended(ctx); err != nil { // not earlier: the kernel does not report an event twice
			return err
		}
	}
	return nil
}

// wakeFound wakes the waiters for the first n events. If a callback does not return, the remaining events stay in
// found. The reading side calls the callback, so it comes last.
func (p *poller) wakeFound(n int) {
	for i, d := range p.found[:n] {
		if d == nil {
			continue
		}
		p.found[i] = nil
		e := &p.events[i]
		if e.write {
			d.wake(&d.w, e.ended)
		}
		if e.read {
			d.wake(&d.r, e.ended)
		}
	}
}
