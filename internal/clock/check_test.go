package clock

import "fmt"

// check returns which invariant of the wheel does not hold, by the names in wheel.go. It walks all timers.
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

// check returns which invariant of the clock or of its wheels does not hold. No pass may run, and no timer be armed,
// meanwhile.
func (c *Real) check() error {
	for i := range c.shards {
		sh := &c.shards[i]
		if sh.wheel == nil {
			if sh.covered.Load() != unset {
				return fmt.Errorf("S1 covered: shard %d is empty, and covered for %d", i, sh.covered.Load())
			}
			continue
		}
		if err := sh.wheel.check(); err != nil {
			return fmt.Errorf("shard %d: %w", i, err)
		}
		for j := range sh.wheel.slots {
			for t := sh.wheel.slots[j].head; t != nil; t = t.next {
				if t.when < sh.covered.Load() {
					return fmt.Errorf("S1 covered: timer %d of shard %d, which is covered for %d", t.when, i, sh.covered.Load())
				}
				if c.shardOf(t) != sh {
					return fmt.Errorf("timer %d is in shard %d, and will be stopped in another", t.when, i)
				}
			}
		}
		if sh.due != nil && sh.due.n != 0 {
			return fmt.Errorf("shard %d has %d timers that were taken and not fired", i, sh.due.n-sh.due.at)
		}
	}
	if want := max(c.earliest(), c.lastPass+c.gap); c.wakeAt > want && !c.closed.Load() && c.earliest() != unset {
		return fmt.Errorf("R1 covered: the Go timer is set to %d, not to %d", c.wakeAt, want)
	}
	return nil
}

// targetFunc makes a function a Target.
type targetFunc func(ticket uint64)

func (f targetFunc) Expire(ticket uint64) { f(ticket) }
