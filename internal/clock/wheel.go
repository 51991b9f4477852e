package clock

import "math/bits"

// The wheel: timers ordered by deadline, O(1) to arm and to stop, whatever their number.
// Spec: TM-06 (arming and stopping takes constant time)
//
// Eleven levels of 64 slots cover the 63 bits of a nanosecond clock, six bits a level; the top level uses 8 of its
// slots. A timer's level is that of the highest bit in which its deadline differs from cur, the position of the wheel.
// Its slot is given by the six bits of the deadline at that level:
//
//	           bits 62..60     59..54    ...      11..6       5..0
//	  when    [  level 10  ][  level 9  ] ... [  level 1  ][  level 0  ]
//
//	  cur  =     0              0         ...      3           17
//	  when =     0              0         ...      3           40        level 0, slot 40: in 23 ns
//	  when =     0              0         ...      9            5        level 1, slot  9: when the 64 ns block 9 comes
//	  when =     0              7         ...      .            .        level 9, slot  7: in some years
//
//	  level 2  . . . . . . . # . . # . .      each slot 4096 ns wide; everything here is later than all of level 1
//	               |<- cur
//	  level 1  . . . . . # . . . . . . .      each slot 64 ns wide; everything here is later than all of level 0
//	               |<- cur
//	  level 0  . . . . . . # # . . . . .      each slot is one nanosecond
//	                 |<- cur
//
// All timers of one level share their higher bits with cur; those of higher levels do not. So the earliest timer is in
// the first occupied slot of the lowest occupied level: two bit scans. When time comes to a slot that holds several
// timers, cur moves into it and the slot is split: its timers go to lower levels, in list order. A slot that holds one
// timer is not split: the timer fires from where it is. So sparse timers are moved rarely and lone ones never.
//
// Invariants (checked by wheel.check in the tests after every step):
//
//	W1 placed:  a linked timer is at the level and slot that its deadline and cur determine. The slot being split may
//	            also hold timers that belong below it.
//	W2 ahead:   no linked timer has a deadline before cur; cur is never later than the time of the clock.
//	W3 bitmap:  a bit of occupied is set if and only if its slot has a timer; a bit of levels, if occupied is not 0.
//	W4 floor:   the floor of an occupied slot is not later than any deadline in it. It is exact until a timer is stopped.
//	W5 fifo:    timers of one deadline are in one list, in the order of arming.
//
// W5 holds because a timer's place depends only on its deadline and cur, and splitting keeps the order of the list. A
// split is done in bounded steps, between which the lock is free. A timer armed meanwhile that belongs below the slot
// being split is put at the end of that slot, behind the older ones of the same deadline.
//
// Rejected: a coarse tick (2^16 ns was the first plan). It saves three levels, but leaves a slot of level 0 unordered:
// the slot must be sorted when it is due, perhaps a million timers under one hold of the lock, and then kept as a list
// that arming and stopping must handle. With ticks of one nanosecond, splitting does the sorting (the structure is a
// radix heap), and the memory is 17 KiB a clock. The classical wheel wakes at the start of a slot to cascade it, which
// costs a lone timer one wake for each level; here the floor of a slot gives the real deadline instead. A heap is exact
// too, but arming among a million timers costs up to twenty cache misses, and stopping must find the node or leave it
// in.

const (
	levelBits = 6
	slotCount = 1 << levelBits
	slotMask  = slotCount - 1
	levelMax  = (63 + levelBits - 1) / levelBits
)

type slot struct {
	head, tail *Timer
	floor      int64
}

// wheel has neither a lock nor a time source: its clock has both. The zero value is an empty wheel at time 0.
type wheel struct {
	cur      int64
	count    int
	split    int    // level of the slot being split, which cur is in; 0 if none (level 0 is never split)
	levels   uint16 // which levels have timers
	occupied [levelMax]uint64
	slots    [levelMax * slotCount]slot
}

// levelOf returns the level at which a deadline belongs.
//
//go:norace
func (w *wheel) levelOf(when int64) int {
	return (bits.Len64(uint64(when^w.cur)|1) - 1) / levelBits
}

// indexOf returns the slot of a deadline at a level.
//
//go:norace
func indexOf(when int64, level int) int {
	return level<<levelBits | int(uint64(when)>>(uint(level)*levelBits))&slotMask
}

// arm links an idle timer. A deadline behind cur counts as cur.
//
//go:norace
func (w *wheel) arm(t *Timer, when int64, target Target, ticket uint64) {
	t.when = max(when, w.cur)
	t.ticket = ticket
	t.target = target
	w.count++
	w.link(t, max(w.levelOf(t.when), w.split))
}

// stop unlinks a timer and reports whether it was armed.
//
//go:norace
func (w *wheel) stop(t *Timer) bool {
	if t.place == 0 {
		return false
	}
	w.count--
	w.unlink(t)
	t.target = nil
	return true
}

// link appends t to its slot at level.
//
//go:norace
func (w *wheel) link(t *Timer, level int) {
	i := indexOf(t.when, level)
	s := &w.slots[i]
	t.place = uint16(i + 1)
	if last := s.tail; last != nil {
		t.prev = last
		last.next = t
		s.floor = min(s.floor, t.when)
	} else {
		s.head = t
		s.floor = t.when
		w.occupied[level] |= 1 << (i & slotMask)
		w.levels |= 1 << level
	}
	s.tail = t
}

// unlink removes t from its slot. A split ends when its slot is empty, no matter what removed the last timer.
//
//go:norace
func (w *wheel) unlink(t *Timer) {
	i := int(t.place) - 1
	s := &w.slots[i]
	next, prev := t.next, t.prev
	t.next, t.prev, t.place = nil, nil, 0
	if next != nil {
		next.prev = prev
	} else {
		s.tail = prev
	}
	if prev != nil {
		prev.next = next
		return
	}
	s.head = next
	if next != nil {
		return
	}
	level := i >> levelBits
	w.occupied[level] &^= 1 << (i & slotMask)
	if w.occupied[level] == 0 {
		w.levels &^= 1 << level
	}
	if level == w.split && i == indexOf(w.cur, level) {
		w.split = 0
	}
}

// next returns a time before which no timer is due: the earliest deadline, or an earlier one whose timer was stopped,
// or unset. It must not be called during a split.
//
//go:norace
func (w *wheel) next() int64 {
	if w.levels == 0 {
		return unset
	}
	return w.slots[w.first()].floor
}

// first returns the index of the first occupied slot. There must be one.
//
//go:norace
func (w *wheel) first() int {
	level := bits.TrailingZeros16(w.levels)
	return level<<levelBits | bits.TrailingZeros64(w.occupied[level])
}

// earliest returns the earliest timer, still linked, if its deadline is not after limit, or nil. To find it, earliest
// splits slots, and moves at most moves timers. If that is not enough, it returns nil and spent, and must be called
// again. Limit must not be later than the clock's time when the lock is next free, because cur may move up to limit
// (W2).
//
//go:norace
func (w *wheel) earliest(limit int64, moves *int) (t *Timer, spent bool) {
	for {
		if w.split != 0 && !w.splitOn(moves) {
			return nil, true
		}
		if w.levels == 0 {
			return nil, false
		}
		i := w.first()
		s := &w.slots[i]
		if s.floor > limit {
			return nil, false
		}
		if i < slotCount || s.head.next == nil { // one nanosecond, or one timer: nothing to sort
			if s.head.when > limit {
				s.floor = s.head.when // the floor was the deadline of a stopped timer
				return nil, false
			}
			return s.head, false
		}
		// No timer is earlier than the floor, so cur may move to it. All other slots stay valid: lower levels are
		// empty, and in this level and above, cur passes only empty slots.
		w.cur = s.floor
		w.split = i >> levelBits
	}
}

// splitOn moves timers from the slot that cur is in, at level split, to lower levels, and reports whether it has moved
// all of them. Each timer moves strictly lower, because it shares its bits from level split upwards with cur.
//
//go:norace
func (w *wheel) splitOn(moves *int) (done bool) {
	s := &w.slots[indexOf(w.cur, w.split)]
	for s.head != nil {
		if *moves <= 0 {
			return false
		}
		*moves--
		t := s.head
		w.unlink(t) // ends the split if t is the last
		w.link(t, w.levelOf(t.when))
	}
	return true
}

// take fills the batch with the timers that are due at now, earliest first, and marks them idle: from here on their
// owners may arm them again, and the caller must call Expire for the batch. It reports whether it stopped because the
// batch is full or moves is spent, so that more may be due.
//
//go:norace
func (w *wheel) take(now int64, b *batch, moves int) (more bool) {
	for b.n < batchSize {
		t, spent := w.earliest(now, &moves)
		if t == nil {
			return spent
		}
		w.cur = t.when
		w.count--
		e := &b.list[b.n]
		e.when, e.target, e.ticket = t.when, t.target, t.ticket
		b.n++
		w.unlink(t)
		t.target = nil
	}
	return true
}
