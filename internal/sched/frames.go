package sched

import (
	"sync"

	"github.com/coir-go/coir/internal/coro"
)

// pool holds the resting frames that no worker keeps for itself.
type pool struct {
	mu   sync.Mutex
	head *Frame
	n    int
	low  int // the fewest since trim looked last: more than anybody needed
}

// get hands a frame to w, and a few more into its own pool.
//
//go:norace
func (p *pool) get(w *Worker) *Frame {
	p.mu.Lock()
	defer p.mu.Unlock()
	fr := p.take()
	for range keepFrames / 2 {
		more := p.take()
		if more == nil {
			break
		}
		more.free = w.frames
		w.frames = more
		w.nframes++
	}
	p.low = min(p.low, p.n)
	return fr
}

//go:norace
func (p *pool) take() *Frame {
	fr := p.head
	if fr != nil {
		p.head = fr.free
		fr.free = nil
		p.n--
	}
	return fr
}

// put moves frames of w here until it has no more than keep. They are quiet: the worker's chain is past them.
//
//go:norace
func (p *pool) put(w *Worker, keep int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w.nframes > keep {
		fr := w.frames
		w.frames = fr.free
		w.nframes--
		fr.free = p.head
		p.head = fr
		p.n++
	}
}

// trim lets go of all but keep frames. Those that cannot go (see coro.Release) come back.
//
//go:norace
func (p *pool) trim(keep int) {
	p.mu.Lock()
	var cs []*coro.Coro
	var frames []*Frame
	for p.n > keep {
		fr := p.take()
		frames = append(frames, fr)
		cs = append(cs, &fr.Coro)
	}
	p.low = p.n
	p.mu.Unlock()
	if len(cs) == 0 {
		return
	}
	coro.Release(cs)
	p.mu.Lock()
	for _, fr := range frames {
		if !fr.left {
			fr.free = p.head
			p.head = fr
			p.n++
		}
	}
	p.mu.Unlock()
}
