package buf

import "sync/atomic"

// stack is a stack of free slots, without a lock. It is the fast path of a Pool while no caller waits.
//
//	63  25   24   23       0
//	[ tag ][shut][ slot + 1 ]
//
// A free slot links to the one below it. The tag changes when a slot is put back, so that a compare-and-swap fails if
// the top slot was meanwhile taken and put back above a different slot. A shut stack is empty, and stays so until it is
// opened; meanwhile the pool's channel has the free slots.
type stack struct{ head atomic.Uint64 }

const (
	slotBits = 24
	maxSlots = 1<<slotBits - 1
	shut     = 1 << slotBits
	tagUnit  = 1 << (slotBits + 1)
)

// link is the part of a slot that belongs to the stack: the number of slots in the stack from this one down, and the
// number of the slot below plus 1.
type link struct{ word atomic.Uint64 }

func (l *link) below() uint64 { return l.word.Load() & maxSlots }

func (l *link) depth() uint64 { return l.word.Load() >> slotBits }

// pop takes the top slot. It returns false if the stack is empty or shut.
func (s *stack) pop(slots []slot) (uint32, bool) {
	for {
		h := s.head.Load()
		top := h & maxSlots
		if top == 0 || h&shut != 0 {
			return 0, false
		}
		if s.head.CompareAndSwap(h, h-top+slots[top-1].link.below()) {
			return uint32(top - 1), true
		}
	}
}

// push adds a slot. It returns false if the stack is shut.
func (s *stack) push(slots []slot, i uint32) bool {
	for {
		h := s.head.Load()
		if h&shut != 0 {
			return false
		}
		top, depth := h&maxSlots, uint64(1)
		if top != 0 {
			depth += slots[top-1].link.depth()
		}
		slots[i].link.word.Store(depth<<slotBits | top)
		if s.head.CompareAndSwap(h, h+tagUnit-top+uint64(i)+1) {
			return true
		}
	}
}

// close shuts the stack, and returns the slots that it had.
func (s *stack) close(slots []slot) (all []uint32) {
	for {
		h := s.head.Load()
		top := h & maxSlots
		if !s.head.CompareAndSwap(h, (h+tagUnit-top)|shut) {
			continue
		}
		for ; top != 0; top = slots[top-1].link.below() {
			all = append(all, uint32(top-1))
		}
		return all
	}
}

// open opens a stack that was shut.
func (s *stack) open() {
	for {
		h := s.head.Load()
		if s.head.CompareAndSwap(h, (h+tagUnit)&^shut) {
			return
		}
	}
}

// len returns the number of slots in the stack.
func (s *stack) len(slots []slot) int {
	for {
		h := s.head.Load()
		top := h & maxSlots
		if top == 0 {
			return 0
		}
		depth := slots[top-1].link.depth()
		if s.head.Load() == h {
			return int(depth)
		}
	}
}
