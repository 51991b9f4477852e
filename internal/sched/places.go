package sched

import "github.com/coir-go/coir/internal/xatomic"

// places lists the active workers, so that a worker that looks for work visits only those and not the thousands that
// may be in native calls. There are twice as many places as the target number of workers, because so many workers may
// be active after calls of Block.
//
//	A worker counts as active from before it takes a place until after it leaves the place, so a worker that needs a
//	place always finds one.
//	Except for short moments, only active workers have tasks in their queues.
type places struct {
	list xatomic.Pointer[[]*place] // replaced when it grows, under Scheduler.mu; the places themselves stay
}

type place = xatomic.Pointer[Worker]

// grow makes at least n places. The caller holds mu, or is alone.
//
//go:norace
func (p *places) grow(n int) {
	var old []*place
	if list := p.list.Load(); list != nil {
		old = *list
	}
	if n <= len(old) {
		return
	}
	list, more := make([]*place, n), make([]place, n-len(old))
	for i := range list {
		if i < len(old) {
			list[i] = old[i]
		} else {
			list[i] = &more[i-len(old)]
		}
	}
	p.list.Store(&list)
}

// take gives w a place: the one that it had last, if that one is free.
//
//go:norace
func (p *places) take(w *Worker) {
	if w.place != nil && w.place.CompareAndSwap(nil, w) {
		return
	}
	for {
		for _, x := range *p.list.Load() {
			if x.Load() == nil && x.CompareAndSwap(nil, w) {
				w.place = x
				return
			}
		}
	}
}

// all returns the places. A free place holds nil.
//
//go:norace
func (p *places) all() []*place { return *p.list.Load() }
