package clock

import "fmt"

// check tells which invariant of the wheel does not hold, by the names that wheel.go gives them. It walks everything.
func (w *wheel) check() error {
	count := 0
	for i := range w.slots {
		level, bit := i>>levelBits, uint64(1)<<(i&slotMask)
		s := &w.slots[i]
		if (s.head != nil) != (w.occupied[level]&bit != 0) {
			return fmt.Errorf("W3 bitmap: level %d slot %d: head %p, bit %v", level, i&slotMask, s.head, w.occupied[level]&bit != 0)
		}
		if (w.occupied[level] != 0) != (w.levels>>level&1 != 0) {
			return fmt.Errorf("W3 bitmap: level %d has slots %x, levels are %b", level, w.occupied[level], w.levels)
		}
		var prev *Timer
		for t := s.head; t != nil; prev, t = t, t.next {
			count++
			if t.prev != prev {
				return fmt.Errorf("broken list: level %d slot %d: timer %d has prev %p, not %p", level, i&slotMask, t.when, t.prev, prev)
			}
			if int(t.place)-1 != i {
				return fmt.Errorf("W1 placed: timer %d believes it is in slot %d, is in %d", t.when, int(t.place)-1, i)
			}
			want := w.levelOf(t.when)
			if want < w.split {
				want = w.split
			}
			if level != want && !(level < w.split && level == w.levelOf(t.when)) {
				return fmt.Errorf("W1 placed: timer %d is at level %d, not %d (cur %d, split %d)", t.when, level, want, w.cur, w.split)
			}
			if indexOf(t.when, level) != i {
				return fmt.Errorf("W1 placed: timer %d is in slot %d of level %d", t.when, i&slotMask, level)
			}
			if t.when < w.cur {
				return fmt.Errorf("W2 ahead: timer %d behind cur %d", t.when, w.cur)
			}
			if t.when < s.floor {
				return fmt.Errorf("W4 floor: timer %d below %d", t.when, s.floor)
			}
		}
		if s.tail != prev {
			return fmt.Errorf("broken list: level %d slot %d: tail %p, not %p", level, i&slotMask, s.tail, prev)
		}
	}
	if count != w.count {
		return fmt.Errorf("count is %d, linked are %d", w.count, count)
	}
	if w.split != 0 && w.slots[indexOf(w.cur, w.split)].head == nil {
		return fmt.Errorf("split of level %d goes on in an empty slot", w.split)
	}
	return nil
}

// targetFunc makes a function a Target.
type targetFunc func(ticket uint64)

func (f targetFunc) Expire(ticket uint64) { f(ticket) }
