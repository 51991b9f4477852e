package channel

import "github.com/coir-go/coir/internal/park"

// Watcher is told when a side of a channel may have become ready. It is called with the channel's lock held.
type Watcher interface {
	// BecameReady returns a parker to ready after unlocking, or nil. It reports true if the watcher is gone, and need
	// not be told again.
	BecameReady() (ready *park.Parker, gone bool)
	// Gone reports whether the watcher is gone.
	Gone() bool
}

// Watch is a watcher's place in the list of a channel.
type Watch struct {
	Watcher
	prev, next *Watch
	ended      bool // it was taken out of the list, for good

	// From when the watcher was told until its parker is readied. It is not told twice in between: the watcher sleeps.
	asleep *park.Parker
	woken  *Watch // the next whose parker is to be readied
}

// Ended reports whether the watch was taken out of its list.
//
//go:norace
func (w *Watch) Ended() bool { return w.ended }

// watchers are the watches of a channel, by side.
type watchers struct {
	first  [2]*Watch
	n      [2]int
	enough [2]int // at so many look for those whose watcher is gone
	woken  *Watch // those whose parkers are to be readied after unlocking
}

// Watch puts a watch into the list of one side. Now and then it takes out those whose watcher is gone: as often as their
// number could have doubled, so that a channel to which nothing happens does not collect them.
//
//go:norace
func (c *Core) Watch(side Side, w *Watch) {
	if c.watch == nil {
		c.watch = new(watchers)
		c.noted = true
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

// WithdrawWatch takes a watch out of the list of one side, for good.
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

// tell tells the watchers of one side that it may have become ready. TakeWoken has those to ready.
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

// TellBoth tells the watchers of both sides.
//
//go:norace
func (c *Core) TellBoth() {
	c.tell(Sending)
	c.tell(Receiving)
}

// TakeWoken returns the watches whose parkers are to be readied after unlocking, by Next. It is called before
// unlocking.
//
//go:norace
func (c *Core) TakeWoken() (first *Watch) {
	if c.watch != nil {
		first, c.watch.woken = c.watch.woken, nil
	}
	return first
}

// Next returns the parker of a watch that TakeWoken has returned, and the watch after it. The caller asks before it
// readies the parker: after that the watch is the channel's again.
//
//go:norace
func (w *Watch) Next() (p *park.Parker, next *Watch) {
	p, next = w.asleep, w.woken
	w.asleep, w.woken = nil, nil
	return p, next
}

// Append puts the watches of another list behind those of this one, and returns the first. Either may be nil.
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
