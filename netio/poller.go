//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package netio

import (
	"runtime"
	"sync"
)

// A poller is one goroutine that is blocked in the kernel until a descriptor has an event. It wakes those that wait and
// runs nothing else but callbacks, which are short.
//
// The first descriptor that has to wait starts it, and the last one that is closed ends it, with the descriptors that
// it needs itself. So a program without open connections has no goroutine of this package, and no descriptor.
//
// The kernel hands back a slot of the table and a generation, never the number of a file: an event that was reported
// before its descriptor was closed finds another generation in the slot, and is dropped.
//
// Spec: TK-17 (descriptor readiness completes a ticket)
type poller struct {
	kernel kernel

	mu    sync.Mutex // guards what follows
	table []*descriptor
	free  []uint32
	used  int
	gen   uint32
}

// current is the poller that new descriptors join. A poller that has ended is never used again.
var current struct {
	sync.Mutex
	p *poller
}

// An event is what the kernel reports of a descriptor.
type event struct {
	slot, gen   uint32
	read, write bool
	ended       bool // no further event may come
}

// batch is how many events one call of the kernel returns at most.
const batch = 128

// join gives d a slot of the current poller. The caller holds d.mu.
func join(d *descriptor) (*poller, error) {
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

// leave gives a slot back. The last one ends the poller.
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
		p.kernel.stop()
	}
}

// run delivers events until the poller is stopped.
//
// After it has woken others it lets them run, on this thread, which is the nearest. Then it looks whether there are
// more events without blocking: that costs a tenth of a block that ends at once. Only then it blocks. A blocked thread
// comes back by itself, also when all processors are busy, while Go's own poller is then looked at once in ten
// milliseconds.
func (p *poller) run() {
	var events [batch]event
	var found [batch]*descriptor
	block := true
	for {
		n, ok := p.kernel.wait(&events, block)
		if !ok {
			p.kernel.close()
			return
		}
		p.mu.Lock()
		for i, e := range events[:n] {
			if d := p.table[e.slot]; d != nil && d.gen == e.gen {
				found[i] = d
			}
		}
		p.mu.Unlock()
		for i, d := range found[:n] {
			if d == nil {
				continue
			}
			found[i] = nil
			if events[i].read {
				d.r.wake(events[i].ended)
			}
			if events[i].write {
				d.w.wake(events[i].ended)
			}
		}
		if n > 0 {
			runtime.Gosched()
		}
		block = n == 0
	}
}
