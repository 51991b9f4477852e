package sched

import (
	"sync"

	"github.com/coir-go/coir/internal/coro"
)

// pool holds the resting frames that no worker keeps for itself.
type pool struct {
	trimming sync.Mutex // held by trim

	mu   sync.Mutex
	head *Frame
	n    int
	low  int // the fewest since trim looked last: more than anybody needed

	spent  *Frame // not to be used again
	nspent int
}

// get hands a frame to w, and more into its own pool: the more the more often it asks. A worker that stands in for
// another may need only one, and would keep the others from the rest.
//
//go:norace
func (p *pool) get(w *Worker) *Frame {
	p.mu.Lock()
	defer p.mu.Unlock()
	fr := p.take()
	extra := w.extra
	w.extra = min(2*extra+1, keepFrames/2)
	for range extra {
		more := p.take()
		if more == nil {
			break
		}
		w.keep(more)
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
	if w.spent != nil {
		p.putSpent(w.spent)
		w.spent = nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for w.nframes > keep {
		w.nframes--
		fr := w.frames[w.nframes]
		w.frames[w.nframes] = nil
		fr.free = p.head
		p.head = fr
		p.n++
	}
}

// putSpent takes a frame that is not to be used again.
//
//go:norace
func (p *pool) putSpent(fr *Frame) {
	p.mu.Lock()
	fr.free = p.spent
	p.spent = fr
	p.nspent++
	p.mu.Unlock()
}

// trim lets go of the spent frames and of all others but keep. Those that cannot go (see coro.Release) come back, at the
// end of the line. It reports how many went.
//
//go:norace
func (p *pool) trim(keep int) (gone int) {
	p.trimming.Lock()
	defer p.trimming.Unlock()
	p.mu.Lock()
	var cs []*coro.Coro
	var frames []*Frame
	for fr := p.spent; fr != nil; fr = fr.free {
		frames = append(frames, fr)
		cs = append(cs, &fr.Coro)
	}
	p.spent, p.nspent = nil, 0
	for p.n > keep {
		fr := p.take()
		frames = append(frames, fr)
		cs = append(cs, &fr.Coro)
	}
	p.mu.Unlock()
	if len(cs) > 0 {
		coro.Release(cs)
	}
	p.mu.Lock()
	end := &p.head
	for *end != nil {
		end = &(*end).free
	}
	for _, fr := range frames {
		switch {
		case fr.left:
			gone++
		case fr.exits > maxExits:
			fr.free, p.spent = p.spent, fr
			p.nspent++
		default:
			fr.free = nil
			*end = fr
			end = &fr.free
			p.n++
		}
	}
	p.low = p.n
	p.mu.Unlock()
	return gone
}
