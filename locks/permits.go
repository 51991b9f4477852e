package locks

import "sync/atomic"

// permits counts the permits that are taken. Each change is one compare-and-swap, so that taking and returning permits
// needs no lock while there are no waiters. The highest bit means that there may be waiters. Then only the queue may
// take and return permits, which keeps the order of the waiters.
type permits struct{ word atomic.Uint64 }

const waited = 1 << 63

// takeFast takes n of size permits if they are free and there are no waiters.
//
//go:norace
func (p *permits) takeFast(n, size int) bool {
	w := p.word.Load()
	return w&waited == 0 && w+uint64(n) <= uint64(size) && p.word.CompareAndSwap(w, w+uint64(n))
}

// putFast returns n permits if there are no waiters and at least n are taken.
//
//go:norace
func (p *permits) putFast(n int) bool {
	w := p.word.Load()
	return w&waited == 0 && w >= uint64(n) && p.word.CompareAndSwap(w, w-uint64(n))
}

// take takes n of size permits, or records that its caller waits.
//
//go:norace
func (p *permits) take(n, size int) bool {
	for {
		w := p.word.Load()
		if w&^waited+uint64(n) > uint64(size) {
			if p.word.CompareAndSwap(w, w|waited) {
				return false
			}
		} else if p.word.CompareAndSwap(w, w+uint64(n)) {
			return true
		}
	}
}

// put returns n permits. It reports false if fewer than n are taken.
//
//go:norace
func (p *permits) put(n int, waiting bool) bool {
	for {
		w := p.word.Load()
		if w&^waited < uint64(n) {
			return false
		}
		left := w&^waited - uint64(n)
		if waiting {
			left |= waited
		}
		if p.word.CompareAndSwap(w, left) {
			return true
		}
	}
}

// taken returns the number of permits that are taken.
//
//go:norace
func (p *permits) taken() int { return int(p.word.Load() &^ waited) }
