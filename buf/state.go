package buf

import "sync/atomic"

// state says which generation of handles owns a buffer. All transitions are compare-and-swaps of one word, so that if
// two handles claim a buffer, one succeeds.
//
//	63        24 23      8 7     0
//	[generation][failures][  pins ]
//
// A Buf is valid while its generation is that of the word. A transition that ends an ownership, by release or by
// hand-over, replaces the generation by one that no handle has ever had. The failures count hand-overs that failed and
// gave the buffer back to the owner: their generations were issued too, so the next new generation must come after
// them. Pins are operations that are using the bytes: a pinned ownership cannot end.
//
// Invariant: a generation above generation+failures was never issued.
type state struct{ word atomic.Uint64 }

const (
	pinBits      = 8
	failureBits  = 16
	maxPins      = 1<<pinBits - 1
	maxFailures  = 1<<failureBits - 1
	genShift     = pinBits + failureBits
	genMask      = 1<<(64-genShift) - 1
	firstGen     = 1
	failureShift = pinBits
)

// outcome is the result of a transition.
type outcome uint8

const (
	done  outcome = iota
	stale         // the handle does not own the buffer
	busy          // the handle owns the buffer, and an operation uses it
)

// init makes gen the owning generation.
func (s *state) init(gen uint64) { s.word.Store(gen << genShift) }

// generation returns the owning generation.
func (s *state) generation() uint64 { return s.word.Load() >> genShift }

// valid reports whether gen owns the buffer.
func (s *state) valid(gen uint64) bool { return s.word.Load()>>genShift == gen }

// pin prevents the ownership of gen from ending until unpin.
func (s *state) pin(gen uint64) outcome {
	for {
		w := s.word.Load()
		switch {
		case w>>genShift != gen:
			return stale
		case w&maxPins == maxPins:
			return busy
		case s.word.CompareAndSwap(w, w+1):
			return done
		}
	}
}

func (s *state) unpin() { s.word.Add(^uint64(0)) }

// end ends the ownership of gen. It returns the generation that owns the buffer from then on, which was never issued
// before.
func (s *state) end(gen uint64) (next uint64, o outcome) {
	for {
		w := s.word.Load()
		switch {
		case w>>genShift != gen:
			return 0, stale
		case w&maxPins != 0:
			return 0, busy
		}
		next = (gen + 1 + w>>failureShift&maxFailures) & genMask
		if s.word.CompareAndSwap(w, next<<genShift) {
			return next, done
		}
	}
}

// restore gives the ownership back to gen. end took it from gen and returned next.
func (s *state) restore(next, gen uint64) outcome {
	for {
		w := s.word.Load()
		switch {
		case w>>genShift != next:
			return stale
		case w&maxPins != 0:
			return busy
		}
		// After this many failures the generations of failed hand-overs repeat. That affects only a function that kept
		// the Buf of a hand-over for which it reported a failure.
		failures := min((next-gen)&genMask+w>>failureShift&maxFailures, maxFailures)
		if s.word.CompareAndSwap(w, gen<<genShift|failures<<failureShift) {
			return done
		}
	}
}
