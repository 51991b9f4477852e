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

// A poller is one fiber that is blocked in the kernel until a descriptor has an event. Then it wakes the waiters. Apart
// from that, it runs only callbacks, which are short.
//
// The first descriptor that has to wait starts the poller. When the last one is closed, the poller ends and closes its
// own descriptors. So a program without open connections has no goroutine and no descriptor of this package.
//
// The kernel returns a slot of the table and a generation, never the number of a file. So if a descriptor is closed
// after an event was reported, the event finds another generation in the slot and is dropped.
//
// Spec: TK-17 (descriptor readiness completes a ticket)
type poller struct {
	kernel  kernel
	stopped atomic.Bool
	events  [batch]event       // used by deliver, like found
	found   [batch]*descriptor // descriptors of events that are not yet delivered

	mu    sync.Mutex // guards the fields below
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

// join assigns a slot of the current poller to d. The caller holds d.mu.
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

// inBubble reports whether the caller is in a bubble of testing/synctest. Times there have no monotonic reading.
// Elsewhere that happens only if the machine's clock is very wrong, so inBubble then also checks the stack. Round
// removes the monotonic reading. Package internal/bubble knows the same, but netio may not import internal packages.
func inBubble() bool {
	if now := time.Now(); now != now.Round(0) {
		return false
	}
	var b [128]byte
	return bytes.Contains(b[:runtime.Stack(b[:], false)], []byte("synctest bubble"))
}

// leave releases a slot. When the last slot is released, the poller ends.
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

// wake ends the wait in the kernel. It does nothing if the poller has ended, because the number to which it would write
// may belong to another file.
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
// run next on its own worker, and an event costs one switch between fibers. A goroutine would have to wake a worker,
// which is another goroutine and would first have to get a processor.
//
// If the default runtime is closed, run continues as a goroutine, for other runtimes and goroutines.
//
// If a callback calls runtime.Goexit, this goroutine ends and another one continues. A callback that panics ends the
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
		defer context.AfterFunc(ctx, p.wake)() // may be called after the poller has ended
		return p.deliver(ctx)
	})
	if err != nil {
		_ = p.deliver(context.Background())
	}
}

// deliver delivers events until the poller is stopped, or ctx ends.
//
// After it has woken fibers it yields to them. Then it checks for more events without blocking, which is cheap, and
// it blocks only if there are none. A thread that is blocked in the kernel resumes even when all processors are busy;
// Go checks its own poller only every ten milliseconds then.
func (p *poller) deliver(ctx context.Context) error {
	block := func() (int, error) { return p.kernel.wait(&p.events, true), nil }
	p.wakeFound(batch) // events left when a callback called Goexit
	for n := 0; !p.stopped.Load(); {
		if n == 0 {
			n, _ = coir.Blocking(ctx, block)
		} else {
			_ = coir.Yield(ctx)
			n = p.kernel.wait(&p.events, false)
		}
		if p.stopped.Load() { // check before blocking again, because wait has consumed the signal
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
		if err := coir.Ended(ctx); err != nil { // not earlier, because the kernel does not report an event twice
			return err
		}
	}
	return nil
}

// wakeFound wakes the waiters for the first n events. If a callback does not return, the remaining events stay in
// found. The reading side is woken last, because it calls the callback.
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
