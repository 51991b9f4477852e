package sched

import (
	"sync"

	"github.com/coir-go/coir/internal/coro"
)

// pool holds the idle frames that no worker keeps for itself.
type pool struct {
	trimming sync.Mutex // held by trim

	mu   sync.Mutex
	head *Frame
	n    int
	low  int // the smallest n since the last trim: this many frames were not needed

	spent  *Frame // frames that must not be used again
	nspent int
}

// get returns a frame for w, or nil, and moves more frames into w's own pool. The batch grows with demand: a worker
// that replaces another may need only one frame, and must not take those that other workers could use.
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

// put moves frames of w to the pool until w has no more than keep. The stacks of these frames are quiet, because the
// worker has switched away from them.
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

// putSpent adds a frame that must not be used again.
//
//go:norace
func (p *pool) putSpent(fr *Frame) {
	p.mu.Lock()
	fr.free = p.spent
	p.spent = fr
	p.nspent++
	p.mu.Unlock()
}

// trim releases the spent frames, and all others except keep of them. Frames that cannot be released (see coro.Release)
// go back to the end of the list. It returns the number of frames released.
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
