package channel

import "github.com/coir-go/coir/internal/park"

// Watcher is notified when a side of a channel may have become ready. Its methods are called with the channel's lock
// held.
type Watcher interface {
	// BecameReady returns a parker to ready after unlocking, or nil. It reports whether the watcher is gone; if so, it
	// must not be called again.
	BecameReady() (ready *park.Parker, gone bool)
	// Gone reports whether the watcher is gone.
	Gone() bool
}

// Watch is a watcher's place in the list of a channel.
type Watch struct {
	Watcher
	prev, next *Watch
	ended      bool // it was removed from the list, and cannot be put back

	// Set from the time that BecameReady returns a parker until that parker is readied. Meanwhile the watcher sleeps,
	// and BecameReady returns no second parker.
	asleep *park.Parker
	woken  *Watch // the next watch whose parker must be readied
}

// Ended reports whether the watch was removed from its list.
//
//go:norace
func (w *Watch) Ended() bool { return w.ended }

// watchers are the watches of a channel, by side.
type watchers struct {
	first  [2]*Watch
	n      [2]int
	enough [2]int // at this many watches, remove those whose watcher is gone
	woken  *Watch // the watches whose parkers must be readied after unlocking
}

// Watch adds a watch to the list of one side. Each time the number of watches may have doubled, Watch removes those
// whose watcher is gone. Otherwise they would accumulate on a channel that is not used.
//
//go:norace
func (c *Core) Watch(side Side, w *Watch) {
	if c.watch == nil {
		c.watch = new(watchers)
		c.plain = false
	}
	l := c.watch
	if l.n[side] >= l.enough[side] {
		for old := l.first[side]; old != nil; {
			next := old.next
			if old.Gone() {
				l.withdraw(side, old)
			}
			old = next
		}
		l.enough[side] = max(2*l.n[side], 16)
	}
	if w.next = l.first[side]; w.next != nil {
		w.next.prev = w
	}
	l.first[side] = w
	l.n[side]++
}

// WithdrawWatch removes a watch from the list of one side. The watch cannot be put back.
//
//go:norace
func (c *Core) WithdrawWatch(side Side, w *Watch) { c.watch.withdraw(side, w) }

//go:norace
func (l *watchers) withdraw(side Side, w *Watch) {
	if w.ended {
		return
	}
	w.ended = true
	if w.prev == nil {
		l.first[side] = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
	l.n[side]--
}

// tell notifies the watchers of one side that their side may have become ready. TakeWoken then returns those whose
// parkers must be readied.
//
// Spec: SE-21 (a Selector's events do not cost its size)
//
//go:norace
func (c *Core) tell(side Side) {
	l := c.watch
	if l == nil {
		return
	}
	for w := l.first[side]; w != nil; {
		next := w.next
		p, gone := w.BecameReady()
		switch {
		case gone:
			l.withdraw(side, w)
		case p != nil:
			w.asleep, w.woken, l.woken = p, l.woken, w
		}
		w = next
	}
}

// TellBoth notifies the watchers of both sides.
//
//go:norace
func (c *Core) TellBoth() {
	c.tell(Sending)
	c.tell(Receiving)
}

// TakeWoken returns the watches whose parkers must be readied after unlocking, linked by Next. It is called before
// unlocking.
//
//go:norace
func (c *Core) TakeWoken() (first *Watch) {
	if c.watch != nil {
		first, c.watch.woken = c.watch.woken, nil
	}
	return first
}

// Next returns the parker of a watch that TakeWoken has returned, and the watch after it. The caller calls Next before
// it readies the parker: from then on the watch belongs to the channel again.
//
//go:norace
func (w *Watch) Next() (p *park.Parker, next *Watch) {
	p, next = w.asleep, w.woken
	w.asleep, w.woken = nil, nil
	return p, next
}

// Append appends the list of watches more to the list that begins with w, and returns the first watch of the result.
// Either list may be nil.
//
//go:norace
func (w *Watch) Append(more *Watch) *Watch {
	if w == nil {
		return more
	}
	last := w
	for last.woken != nil {
		last = last.woken
	}
	last.woken = more
	return w
}
